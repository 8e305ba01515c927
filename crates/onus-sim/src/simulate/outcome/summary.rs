//! What the counts of several runs mean.

use onus_core::CalleeClaim;

use super::interval::Estimate;
use super::recovery::recovery;
use super::tally::{Handled, Tally};
use crate::simulate::exact::{Exact, exact};
use crate::simulate::plan::Plan;

/// What a policy has come to, over all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The policy.
    pub policy: String,
    /// The value of the parameter that is swept.
    pub value: Option<f64>,
    /// The runs that this is the mean of.
    pub runs: usize,
    /// Whether the only run was interrupted.
    pub interrupted: bool,
    /// Each service with the requests that it handled.
    pub services: Vec<ServiceLoad>,
    /// Requests from outside.
    pub requests: Estimate,
    /// Requests that it has stopped, where it is compared with another policy.
    pub stopped: Option<Stopped>,
    /// Requests at the compared services, the mean over the runs.
    pub(crate) handled_at_compared: f64,
    /// Requests at the compared services for each that no retry has caused, during the outage if
    /// it has a time.
    pub load_factor: Option<Estimate>,
    /// The share of the requests from outside that are answered without an error.
    pub availability: Estimate,
    /// Answers without an error per second.
    pub goodput: Estimate,
    /// Those with a bad key.
    pub bad_keys: Option<BadKeys>,
    /// Seconds from the end of the outage until answers are good again.
    pub recovery: Option<Recovery>,
    /// Attempts at all services, and the retries among them.
    pub attempts: Estimate,
    /// Retries among the attempts.
    pub retries: Estimate,
    /// Retries that were not made because of a claim or mark, the gate, or a budget.
    pub suppressed: Estimate,
    /// Retries that the efficacy gate stopped.
    pub gated: Estimate,
    /// Retries that a budget denied.
    pub denied: Estimate,
    /// Answers that the clients outside got, with an error or without.
    pub answered: Estimate,
    /// Requests at all services that have ended, by an answer or because nobody waited for it.
    pub ended: Estimate,
    /// Requests that services never answered, such as hang for good.
    pub unended: Estimate,
    /// From when to when the outage lasts, in seconds, where it has an end.
    pub outage_s: Option<(f64, f64)>,
    /// Second by second, the mean over the runs.
    pub seconds: Vec<Second>,
    /// What closed forms say, where there are some.
    pub exact: Option<Exact>,
    /// What the client outside read last, in the first run; `None` inside for no error.
    pub last_answer: Option<Option<CalleeClaim>>,
}

/// The load of one service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceLoad {
    /// The service.
    pub name: String,
    /// Its distance from the outside.
    pub depth: u16,
    /// Requests that it handled, retries included.
    pub handled: Estimate,
    /// The same for one request from outside.
    pub per_request: Estimate,
    /// Of its own errors, the share that it did not claim; `None` without any.
    pub own_unclaimed: Option<Estimate>,
}

/// Requests that another policy would have sent beyond those that were, as a mean over the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopped {
    /// Those of the direct callers of the compared services.
    pub direct: f64,
    /// Those of all services.
    pub all: f64,
}

impl Outcome {
    /// What this has stopped of what `other` sent. Policies share the luck of the traffic, so that
    /// both saw the same requests from outside.
    pub(crate) fn stopped_of(&self, other: &Self) -> Stopped {
        let sent = |outcome: &Self| outcome.attempts.mean;
        Stopped {
            direct: other.handled_at_compared - self.handled_at_compared,
            all: sent(other) - sent(self),
        }
    }
}

/// The requests with a bad key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BadKeys {
    /// Their load at the compared services.
    pub load_factor: Option<Estimate>,
    /// The share that is answered without an error.
    pub availability: Option<Estimate>,
    /// The same of all other requests.
    pub others: Option<Estimate>,
}

/// How runs recovered from an outage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// The runs that did within their time.
    pub recovered: usize,
    /// How long they took; `None` unless all did.
    pub seconds: Option<Estimate>,
}

/// One second of a run, as a mean over all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Requests from outside that came in it.
    pub arrivals: f64,
    /// Those of them that were answered without an error while others still came.
    pub ok: f64,
    /// Requests at the compared services.
    pub handled: f64,
    /// Those of them that no retry has caused.
    pub original: f64,
}

/// The outcome of a policy, from the counts of its runs; `None` without any.
pub(crate) fn summarize(plan: &Plan, value: Option<f64>, tallies: &[Tally]) -> Option<Outcome> {
    let complete: Vec<_> = tallies.iter().filter(|tally| !tally.interrupted).collect();
    // Half a run is better than none.
    let tallies: Vec<_> = match complete.is_empty() {
        true => tallies.iter().take(1).collect(),
        false => complete,
    };
    let first = *tallies.first()?;
    let of = |get: &dyn Fn(&Tally) -> f64| over(&tallies, &|tally| Some(get(tally)));
    let count = |get: fn(&Tally) -> u64| of(&|tally| get(tally) as f64);
    let seconds = |tally: &Tally| (tally.end as f64 / 1e9).max(1e-9);
    let has_bad_keys = plan.bad_keys > 0.0;
    Some(Outcome {
        policy: plan.policy.name.clone(),
        value,
        runs: tallies.len(),
        interrupted: first.interrupted,
        services: services(plan, &tallies)?,
        requests: count(|tally| tally.arrivals)?,
        stopped: None,
        handled_at_compared: of(&|tally| tally.compared(|s| s.handled).all as f64)?.mean,
        load_factor: over(&tallies, &|tally| tally.compared(|service| service.outage).factor()),
        availability: of(&|tally| tally.ok as f64 / tally.arrivals.max(1) as f64)?,
        goodput: of(&|tally| tally.ok as f64 / seconds(tally))?,
        bad_keys: has_bad_keys.then(|| bad_keys(&tallies)),
        recovery: plan.outage.filter(|(_, end)| *end < u64::MAX).map(|(_, end)| {
            let times: Vec<_> = tallies.iter().map(|tally| recovery(&tally.seconds, end)).collect();
            let recovered = times.iter().flatten().count();
            let all: Option<Vec<f64>> = times.into_iter().collect();
            Recovery { recovered, seconds: all.and_then(|all| Estimate::of(&all)) }
        }),
        attempts: count(|tally| tally.attempts)?,
        retries: count(|tally| tally.retries)?,
        suppressed: count(|tally| tally.suppressed)?,
        gated: count(|tally| tally.gated)?,
        denied: count(|tally| tally.denied)?,
        answered: count(|tally| tally.answered)?,
        ended: count(|tally| tally.ended)?,
        unended: count(|tally| tally.unended)?,
        outage_s: plan
            .outage
            .filter(|(_, end)| *end < u64::MAX)
            .map(|(from, to)| (from as f64 / 1e9, to as f64 / 1e9)),
        seconds: by_second(&tallies),
        exact: exact(plan),
        last_answer: first.last_answer,
    })
}

/// The estimate of a figure that some runs may not have.
fn over(tallies: &[&Tally], get: &dyn Fn(&Tally) -> Option<f64>) -> Option<Estimate> {
    let values: Vec<_> = tallies.iter().filter_map(|tally| get(tally)).collect();
    Estimate::of(&values)
}

fn services(plan: &Plan, tallies: &[&Tally]) -> Option<Vec<ServiceLoad>> {
    let load = |(index, service): (usize, &crate::simulate::plan::ServicePlan)| {
        let handled = |tally: &Tally| tally.services[index].handled.all as f64;
        let own_unclaimed = |tally: &Tally| {
            let service = &tally.services[index];
            let errors = service.own_errors;
            (errors > 0).then(|| service.own_unclaimed as f64 / errors as f64)
        };
        Some(ServiceLoad {
            name: service.name.clone(),
            depth: service.depth,
            handled: over(tallies, &|tally| Some(handled(tally)))?,
            per_request: over(tallies, &|tally| {
                Some(handled(tally) / tally.arrivals.max(1) as f64)
            })?,
            own_unclaimed: over(tallies, &own_unclaimed),
        })
    };
    plan.services.iter().enumerate().map(load).collect()
}

fn bad_keys(tallies: &[&Tally]) -> BadKeys {
    let bad = |tally: &Tally| {
        let bad = tally.bad_arrivals;
        (bad > 0).then(|| tally.bad_ok as f64 / bad as f64)
    };
    let others = |tally: &Tally| {
        let others = tally.arrivals - tally.bad_arrivals;
        (others > 0).then(|| (tally.ok - tally.bad_ok) as f64 / others as f64)
    };
    BadKeys {
        load_factor: over(tallies, &|tally| tally.compared(|service| service.bad).factor()),
        availability: over(tallies, &bad),
        others: over(tallies, &others),
    }
}

fn by_second(tallies: &[&Tally]) -> Vec<Second> {
    let longest = tallies.iter().map(|tally| tally.seconds.len()).max().unwrap_or(0);
    let share = 1.0 / tallies.len().max(1) as f64;
    let mut seconds = vec![Second::default(); longest];
    for tally in tallies {
        for (sum, second) in seconds.iter_mut().zip(&tally.seconds) {
            let Handled { all, original } = second.handled;
            sum.arrivals += second.arrivals as f64 * share;
            sum.ok += second.ok as f64 * share;
            sum.handled += all as f64 * share;
            sum.original += original as f64 * share;
        }
    }
    seconds
}
