//! What goes wrong, as it is meant.

use super::{Change, Plan};
use crate::file_error::{Fault, at};
use crate::simulate::graph::Graph;
use crate::simulate::plan::build::find;
use crate::simulate::scenario::{AtService, Capacity, Deploy, FaultFile};

/// Something that goes wrong in some requests of a service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FaultPlan {
    pub(crate) what: What,
    pub(crate) probability: f64,
    pub(crate) bad_keys: bool,
    /// Only in so many of the instances.
    pub(crate) instances: u32,
    pub(crate) numbers: Numbers,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl FaultPlan {
    /// Whether it may happen in every request at any time.
    pub(crate) fn is_constant(&self) -> bool {
        let always = self.from == 0 && self.to == u64::MAX;
        always && self.numbers == Numbers::All && self.instances == u32::MAX
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Fails,
    FailsAtOnce,
    LosesAnswer,
    Hangs,
    Excluded,
    CannotCall,
}

/// In which of a service's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    All,
    First(u64),
    These(Vec<u64>),
}

impl Numbers {
    pub(crate) fn include(&self, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::First(count) => number <= *count,
            Self::These(numbers) => numbers.contains(&number),
        }
    }
}

/// Puts a fault into a plan.
pub(super) fn put(
    plan: &mut Plan,
    graph: &Graph,
    fault: &FaultFile,
    probability: Option<f64>,
) -> Result<(), Fault> {
    let (what, fault) = match fault {
        FaultFile::Fails(fault) if fault.at_once => (What::FailsAtOnce, fault),
        FaultFile::Fails(fault) => (What::Fails, fault),
        FaultFile::LosesAnswers(fault) => (What::LosesAnswer, fault),
        FaultFile::Hangs(fault) => (What::Hangs, fault),
        FaultFile::AnswersExcluded(fault) => (What::Excluded, fault),
        FaultFile::CannotCall(fault) => (What::CannotCall, fault),
        FaultFile::Capacity(fault) => return capacity(plan, graph, fault),
        FaultFile::Deploy(fault) => return deploy(plan, graph, fault),
    };
    of_service(plan, graph, what, fault, probability)
}

fn of_service(
    plan: &mut Plan,
    graph: &Graph,
    what: What,
    fault: &AtService,
    probability: Option<f64>,
) -> Result<(), Fault> {
    let service = find(graph, &fault.service)?;
    let numbers = match (fault.first, &fault.numbers) {
        (Some(_), Some(_)) => {
            return Err(at(&fault.service, "`first` and `numbers` exclude each other".to_owned()));
        }
        (Some(first), None) => Numbers::First(first),
        (None, Some(numbers)) => Numbers::These(numbers.clone()),
        (None, None) => Numbers::All,
    };
    let (from, to) = (fault.from.map_or(0, |span| span.0), fault.to.map_or(u64::MAX, |to| to.0));
    if to <= from {
        return Err(at(&fault.service, "the fault ends before it begins".to_owned()));
    }
    plan.services[service].faults.push(FaultPlan {
        what,
        probability: probability.unwrap_or(fault.probability.0),
        bad_keys: fault.bad_keys,
        instances: fault.instances.unwrap_or(u32::MAX),
        numbers,
        from,
        to,
    });
    Ok(())
}

fn capacity(plan: &mut Plan, graph: &Graph, fault: &Capacity) -> Result<(), Fault> {
    let service = find(graph, &fault.service)?;
    let Some(workers) = plan.services[service].workers else {
        let message = format!("`{}` has no limit of workers to cut", fault.service.value);
        return Err(at(&fault.service, message));
    };
    if fault.to <= fault.from {
        return Err(at(&fault.service, "the fault ends before it begins".to_owned()));
    }
    let left = (f64::from(workers) * fault.left.0).round() as u32;
    let service = service as u32;
    plan.changes.push((fault.from.0, Change::Workers { service, workers: left }));
    plan.changes.push((fault.to.0, Change::Workers { service, workers }));
    Ok(())
}

fn deploy(plan: &mut Plan, graph: &Graph, fault: &Deploy) -> Result<(), Fault> {
    let (from, to) = (find(graph, &fault.from)?, find(graph, &fault.to)?);
    let edges = plan.services[from].steps.iter().cloned().flatten();
    let edge = edges.into_iter().find(|edge| plan.edges[*edge as usize].to as usize == to);
    let Some(edge) = edge else {
        let message = format!("{} does not call {}", fault.from.value, fault.to.value);
        return Err(at(&fault.to, message));
    };
    let fail_open = fault.fail_open;
    plan.changes.push((fault.at.0, Change::FailOpen { edge, fail_open }));
    if let Some(after) = fault.learnt_after {
        let held = super::links::class(fail_open);
        plan.changes.push((fault.at.0 + after.0, Change::Held { edge, held }));
    }
    Ok(())
}

/// The services with faults, and from when to when, where there is one time for all.
pub(super) fn faulty(
    file: &[FaultFile],
) -> (Vec<&serde_saphyr::Spanned<String>>, Option<(u64, u64)>) {
    let mut services = Vec::new();
    let mut outage: Option<(u64, u64)> = None;
    let mut always = false;
    for fault in file {
        let (service, from, to) = match fault {
            FaultFile::Fails(at)
            | FaultFile::LosesAnswers(at)
            | FaultFile::Hangs(at)
            | FaultFile::CannotCall(at) => (&at.service, at.from, at.to),
            FaultFile::Capacity(at) => (&at.service, Some(at.from), Some(at.to)),
            FaultFile::AnswersExcluded(_) | FaultFile::Deploy(_) => continue,
        };
        services.push(service);
        match (from, to) {
            (None, None) => always = true,
            (from, to) => {
                let from = from.map_or(0, |span| span.0);
                let to = to.map_or(u64::MAX, |span| span.0);
                let (first, last) = outage.unwrap_or((from, to));
                outage = Some((first.min(from), last.max(to)));
            }
        }
    }
    (services, outage.filter(|_| !always))
}
