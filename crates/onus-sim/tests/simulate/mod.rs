//! The simulator.

mod closed_forms;
mod figures;
mod findings;
mod mission;
mod mistakes;
mod runs;
mod topologies;
mod vectors;
mod why;

use std::sync::atomic::AtomicBool;

use onus_sim::FileError;
use onus_sim::simulate::{Changes, Experiment, Outcome, RunOptions, Scenario, run};

/// Nobody stops a run.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// The files of a scenario that names none.
pub(crate) fn none(path: &str) -> Result<String, String> {
    Err(format!("{path} is not there"))
}

/// Reads a scenario that names no files.
pub(crate) fn load(text: &str) -> Result<Scenario, FileError> {
    Scenario::load("test.yaml", text, &Changes::default(), &none)
}

/// Plays a scenario.
#[track_caller]
pub(crate) fn play(text: &str) -> Experiment {
    let scenario = load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, &RunOptions { threads: 2, stop: &NEVER, progress: &|| () })
}

/// The outcome of a policy.
#[track_caller]
pub(crate) fn outcome<'a>(experiment: &'a Experiment, policy: &str) -> &'a Outcome {
    let of_policy = experiment.outcomes.iter().find(|outcome| outcome.policy == policy);
    of_policy.unwrap_or_else(|| panic!("there is no outcome of {policy}"))
}
