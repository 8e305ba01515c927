//! A scenario: read, checked, and ready to run.

mod faults;
mod file;
mod policies;
mod shipped;
mod sweep;
mod topology;
mod wiring;

pub(crate) use faults::{AtService, Capacity, Deploy, FaultFile};
pub(crate) use file::{
    BackoffFile, Balancing, EdgeFile, ModeFile, RetriesBy, ScenarioFile, ServiceFile,
};
pub(crate) use policies::{PolicyName, PolicyOptions};
pub use shipped::{SHIPPED, shipped};
pub(crate) use sweep::Parameter;
pub(crate) use topology::Shape;

use serde_saphyr::Spanned;
use sweep::SweepFile;

use super::plan::{Plan, setting, under};
use crate::file_error::{Fault, FileError, at, overall};

/// A scenario that makes sense, under each of its policies.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) seeds: u32,
    pub(crate) parameter: Option<&'static str>,
    pub(crate) against: Option<String>,
    pub(crate) cells: Vec<Cell>,
}

/// The scenario at one value of the sweep, under each policy.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) value: Option<f64>,
    pub(crate) plans: Vec<Plan>,
}

/// What the command line changes of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// How often each policy is run.
    pub seeds: Option<u32>,
    /// A sweep, as `PARAM=A,B,…`.
    pub sweep: Option<String>,
}

impl Scenario {
    /// Reads a scenario. `name` stands in messages and results; `read` reads the files that the
    /// topology names.
    ///
    /// # Errors
    ///
    /// What makes no sense, its place, and what is allowed.
    pub fn load(
        name: &str,
        text: &str,
        changes: &Changes,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, FileError> {
        let file: ScenarioFile = serde_saphyr::from_str(text)
            .map_err(|error| FileError::of_parser(name, text, &error))?;
        Self::of_file(name, file, changes, read).map_err(|fault| FileError::new(name, text, fault))
    }

    fn of_file(
        name: &str,
        mut file: ScenarioFile,
        changes: &Changes,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, Fault> {
        if let Some(sweep) = &changes.sweep {
            file.sweep = Some(SweepFile::parse(sweep).map_err(overall)?);
        }
        if let Some(sweep) = &file.sweep {
            sweep.check().map_err(overall)?;
        }
        let seeds = changes.seeds.unwrap_or(file.seeds);
        if !(1..=10_000).contains(&seeds) {
            return Err(overall(format!("{seeds} seeds; allowed is 1 to 10000")));
        }
        if file.policies.is_empty() {
            return Err(overall("there is no policy to run".to_owned()));
        }
        let values: Vec<_> = match &file.sweep {
            Some(sweep) => sweep.values.iter().map(|v| Some((sweep.parameter, *v))).collect(),
            None => vec![None],
        };
        let mut cells = Vec::with_capacity(values.len());
        for value in values {
            let graph = wiring::graph(&file, value, read)?;
            let setting = setting(&file, graph, value)?;
            let plans = file.policies.iter().map(|policy| under(&setting, &policy.0, value));
            let plans: Vec<Plan> = plans.collect::<Result<_, _>>()?;
            cells.push(Cell { value: value.map(|(_, value)| value), plans });
        }
        check_names(&cells)?;
        check_against(file.against.as_ref(), &cells)?;
        let parameter = file.sweep.as_ref().map(|sweep| sweep.parameter.as_str());
        let against = file.against.map(|name| name.value);
        Ok(Self { name: name.to_owned(), about: file.about, seeds, parameter, against, cells })
    }

    /// The runs that the scenario takes.
    #[must_use]
    pub fn runs(&self) -> u64 {
        let plans = self.cells.iter().map(|cell| cell.plans.len() as u64).sum::<u64>();
        plans * u64::from(self.seeds)
    }
}

fn check_against(against: Option<&Spanned<String>>, cells: &[Cell]) -> Result<(), Fault> {
    let (Some(against), Some(cell)) = (against, cells.first()) else { return Ok(()) };
    let names: Vec<_> = cell.plans.iter().map(|plan| plan.policy.name.as_str()).collect();
    if names.contains(&against.value.as_str()) {
        return Ok(());
    }
    let allowed = names.join(", ");
    Err(at(against, format!("`{}` is none of the policies; allowed is {allowed}", against.value)))
}

fn check_names(cells: &[Cell]) -> Result<(), Fault> {
    let Some(cell) = cells.first() else { return Ok(()) };
    for (index, plan) in cell.plans.iter().enumerate() {
        let name = &plan.policy.name;
        if cell.plans[..index].iter().any(|other| other.policy.name == *name) {
            let hint = "give one of them a `name`";
            return Err(overall(format!("two policies are called `{name}`; {hint}")));
        }
    }
    Ok(())
}
