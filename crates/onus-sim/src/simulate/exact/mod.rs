//! Closed forms, where there are some: a chain without limits, in which one service fails.
//!
//! They are of the long run and of budgets that are drained, and use nothing of the simulator.

mod ratio;

use onus_core::{Arm, BudgetConfig, Deposit};

pub use ratio::Ratio;

use super::plan::{EdgePlan, FaultPlan, Plan, What};
use super::policy::{Claims, Shipped};
use super::scenario::RetriesBy;

/// What the closed forms say of a scenario under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// Requests that each service handles for one from outside.
    pub load: Vec<Ratio>,
    /// Requests that the service that fails handles for each that no retry has caused.
    pub load_factor: Ratio,
    /// The share of the requests from outside that are answered without an error.
    pub availability: Ratio,
}

/// The closed forms; `None` where there are none.
pub(crate) fn exact(plan: &Plan) -> Option<Exact> {
    let shipped = plan.shipped()?;
    let (culprit, fault) = culprit(plan)?;
    let known = !shipped.gate && !shipped.probes && shipped.claims != Claims::None;
    if !known || !is_plain_chain(plan) {
        return None;
    }
    let failure = Ratio::of_probability(fault.probability)?;
    let hops = retrying_hops(plan, shipped, culprit);
    if failure == Ratio::ONE {
        let factor = factor(shipped, failure)?;
        let mut load = vec![Ratio::ONE];
        for service in 1..plan.services.len() {
            let above = load[service - 1];
            load.push(if hops.contains(&service) { above.times(factor)? } else { above });
        }
        let load_factor = load[culprit];
        return Some(Exact { load, load_factor, availability: Ratio::ONE.rest()? });
    }
    // Failures that are independent have a short form where one hop retries into the culprit.
    if hops.iter().any(|service| *service != culprit) {
        return None;
    }
    let mut load = vec![Ratio::ONE; plan.services.len()];
    let mut error = failure;
    if !hops.is_empty() {
        load[culprit..].fill(factor(shipped, failure)?);
        error = remaining(shipped, failure)?;
    }
    let load_factor = load[culprit];
    Some(Exact { load, load_factor, availability: error.rest()? })
}

/// The services into which a failed call is retried, from the culprit up: the claim is followed on
/// its way.
fn retrying_hops(plan: &Plan, shipped: &Shipped, culprit: usize) -> Vec<usize> {
    let mut hops = Vec::new();
    let mut open = true;
    for service in (1..=culprit).rev().take_while(|_| shipped.attempts >= 2) {
        let caller = &plan.services[service - 1];
        let retries = (open || !caller.onus) && is_retried(&plan.edges[service - 1]);
        if retries {
            hops.push(service);
        }
        let hands_off = open && !retries && shipped.claims == Claims::Shipped;
        open = !caller.onus || caller.context_lost || hands_off;
    }
    hops
}

/// Whether the policy, and the scenario, let calls of an edge be retried.
fn is_retried(edge: &EdgePlan) -> bool {
    edge.retried && edge.own_attempts.is_none()
}

/// Attempts per call that fails with this probability each time, at one hop.
fn factor(shipped: &Shipped, failure: Ratio) -> Option<Ratio> {
    match shipped.budget {
        None => {
            // 1 + q + q² and so on.
            let mut sum = Ratio::ONE;
            for _ in 1..shipped.attempts {
                sum = sum.times(failure)?.plus(Ratio::ONE)?;
            }
            Some(sum)
        }
        Some(budget) => Ratio::ONE.plus(retries(shipped, budget, failure)?),
    }
}

/// Retries per call under a budget, with one retry for each.
fn retries(shipped: &Shipped, budget: BudgetConfig, failure: Ratio) -> Option<Ratio> {
    let plain =
        shipped.attempts == 2 && budget.deposit == Deposit::Request && budget.min_per_second == 0;
    let percent = Ratio::new(u128::from(budget.percent), 100)?;
    plain.then(|| percent.least(failure))
}

/// The share of the calls that fail in the end, at one hop.
fn remaining(shipped: &Shipped, failure: Ratio) -> Option<Ratio> {
    match shipped.budget {
        None => (1..shipped.attempts).try_fold(failure, |error, _| error.times(failure)),
        Some(budget) => {
            // Of those that are retried the share `failure` fails again; the others stay failed.
            let saved = retries(shipped, budget, failure)?.times(failure.rest()?)?;
            failure.minus(saved)
        }
    }
}

/// The only service with a fault, and the fault, if it is of the plainest kind.
fn culprit(plan: &Plan) -> Option<(usize, &FaultPlan)> {
    let mut faults = (0..)
        .zip(&plan.services)
        .flat_map(|(index, service)| service.faults.iter().map(move |fault| (index, fault)));
    let (culprit, fault) = faults.next()?;
    let plain = fault.what == What::Fails && !fault.bad_keys && fault.is_constant();
    (faults.next().is_none() && plain && culprit > 0).then_some((culprit, fault))
}

/// Whether each service calls the next one, nothing is limited, and no operator interferes.
fn is_plain_chain(plan: &Plan) -> bool {
    let chain = plan.edges.len() + 1 == plan.services.len()
        && plan.entries.len() == 1
        && plan.entries[0].0 == 0
        && plan.changes.is_empty();
    let edges = (1..).zip(&plan.edges).all(|(service, edge)| {
        let ordinary = edge.to == service && edge.calls == 1.0 && edge.timeout.is_none();
        let budget = edge.own_budget_percent.is_none();
        ordinary
            && !edge.fail_open
            && edge.replayable
            && budget
            && edge.own_attempts.is_none_or(|n| n < 2)
    });
    let services = plan.services.iter().all(|service| {
        let limits = service.workers.is_some() || service.timeout.is_some();
        let apart = service.shield || service.drops || service.arm == Arm::Observe;
        let repeats = service.tries > 1 || service.retries != RetriesBy::Policy;
        !limits && !apart && !repeats
    });
    chain && edges && services
}
