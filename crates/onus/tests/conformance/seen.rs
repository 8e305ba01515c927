//! What can be seen from outside: in the events, on the metrics page, and by the application.

use std::sync::Mutex;

use onus::Stop;
use onus_conformance::step::Then;
use onus_conformance::{Fact, Observation};
use onus_core::{EdgeOutcome, RetryCause};

use super::calls::End;
use super::events::Decision;
use crate::cast::Series;

/// What a decision shows, and the application's end of the call.
pub(super) fn facts(decision: &Decision, end: Option<&End>) -> Observation {
    let reason = decision.reason.as_str();
    if !decision.retried {
        let stop = Stop::ALL.into_iter().find(|stop| stop.as_str() == reason);
        let then = stop.map(|stop| Fact::Then(Then::Stop(stop)));
        let reads = match end {
            Some(End::Answered(Some(outcome))) => Some(Fact::Reads(outcome.read)),
            Some(End::Answered(None) | End::Lost) | None => None,
        };
        return Observation(then.into_iter().chain(reads).collect());
    }
    let cause = RetryCause::ALL.into_iter().find(|cause| cause.as_str() == reason);
    match cause {
        Some(RetryCause::Probe) => [Fact::Then(Then::Probe)].into(),
        Some(RetryCause::Claim(read)) => [Fact::Then(Then::Retry), Fact::Reads(read)].into(),
        None => Observation::nothing(),
    }
}

/// How a call ended that was not sent.
pub(super) fn stopped(end: &Mutex<Option<End>>) -> Observation {
    match &*end.lock().unwrap() {
        Some(End::Answered(Some(outcome))) => [Fact::Then(Then::Stop(outcome.stop))].into(),
        Some(End::Answered(None) | End::Lost) | None => Observation::nothing(),
    }
}

/// What a request has taught, and whether it was clean.
pub(super) fn lessons(before: &[Series], after: &[Series]) -> Vec<Fact> {
    let grown = |series: &&Series| {
        let same = |old: &&Series| old.family == series.family && old.labels == series.labels;
        series.value > before.iter().find(same).map_or(0.0, |old| old.value)
    };
    let of = |family: &'static str| {
        after.iter().filter(move |series| series.family == family).filter(grown)
    };
    let taught = of("onus_edge_requests_total").map(|series| {
        let (outcome, isolated) = (&series.labels["callee_outcome"], &series.labels["isolated"]);
        let outcome = match (outcome.as_str(), isolated.as_str()) {
            ("ok", _) => EdgeOutcome::Ok,
            (_, "true") => EdgeOutcome::FailedAlone,
            _ => EdgeOutcome::FailedJointly,
        };
        (series.labels["callee"].clone(), outcome)
    });
    let taught = Fact::Teaches(taught.collect());
    vec![taught, Fact::Clean(of("onus_clean_requests_total").next().is_some())]
}
