//! Edges: what all calls of one service to another show.

use std::collections::HashMap;

use onus_learn::{MeasuredClass, Measurement, strict_class};

use super::calls::{Call, Calls};
use super::evidence::Evidence;
use super::requests::Requests;
use crate::names::Names;
use crate::span::{Flags, Span};

/// What the dump shows about the calls of one service to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// Whether some of the calls are known from the caller only: the callee has no spans.
    pub remote: bool,
    /// Calls.
    pub calls: u64,
    /// … that failed: the callee's request did, or the caller's span of the call carries an error.
    pub failures: u64,
    /// … because the callee's request did.
    pub failures_at_callee: u64,
    /// … of which the caller's span says so.
    pub failures_at_caller: u64,
    /// Failed calls of requests that failed too.
    pub both: u64,
    /// Requests of the caller that made such calls.
    pub requests: u64,
    /// … of which at least one failed.
    pub requests_with_failure: u64,
    /// … and that failed too.
    pub requests_both: u64,
    /// The most attempts of a call, where repeated calls show some: requests with a failed call made
    /// so many times as many calls as any request without one.
    pub attempts: Option<u32>,
    /// The evidence for the class, and the class that is proven by it (protocol §9).
    pub measured: Measurement,
    /// Failed requests of the caller on any edge. None, and the caller either survives everything
    /// or does not report its errors.
    pub caller_failures: u64,
    /// Whether the dump has no place for the caller's errors and no list names any: that it did not
    /// fail is not known, and no class is proven.
    pub mute: bool,
}

impl Edge {
    /// P(caller failed | callee failed), each call counted. None without a failure.
    #[must_use]
    pub fn p(&self) -> Option<f64> {
        ratio(self.both, self.failures)
    }

    /// The same, each request of the caller counted once.
    #[must_use]
    pub fn p_per_request(&self) -> Option<f64> {
        ratio(self.requests_both, self.requests_with_failure)
    }

    /// The class that [`Edge::p`] alone suggests.
    #[must_use]
    pub fn raw_class(&self) -> MeasuredClass {
        strict_class(self.both, self.failures)
    }

    /// The class that [`Edge::p_per_request`] alone suggests.
    #[must_use]
    pub fn raw_class_per_request(&self) -> MeasuredClass {
        strict_class(self.requests_both, self.requests_with_failure)
    }

    /// The class that is proven, by the rules that decisions follow.
    #[must_use]
    pub fn class(&self) -> MeasuredClass {
        match self.measured.class {
            MeasuredClass::FailOpen | MeasuredClass::FailClose if self.mute => {
                MeasuredClass::Unknown
            }
            MeasuredClass::FailClose
            | MeasuredClass::FailOpen
            | MeasuredClass::Unknown
            | MeasuredClass::NoData => self.measured.class,
        }
    }

    /// The interval that the class is judged by. None without a failure.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        match self.measured.class {
            MeasuredClass::NoData => None,
            MeasuredClass::FailClose | MeasuredClass::FailOpen | MeasuredClass::Unknown => {
                Some(self.measured.interval())
            }
        }
    }
}

fn ratio(both: u64, failures: u64) -> Option<f64> {
    (failures > 0).then(|| both as f64 / failures as f64)
}

/// The edges so far.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    counts: HashMap<(u32, u32), Counts>,
    services: HashMap<u32, Service>,
    evidence: Evidence,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    remote: bool,
    calls: u64,
    failures: u64,
    at_callee: u64,
    at_caller: u64,
    both: u64,
    requests: u64,
    requests_with_failure: u64,
    requests_both: u64,
    /// The most calls of a request with a failed one, and of one without.
    most_failing: usize,
    most_ok: usize,
}

impl Counts {
    /// Requests without a failed call say how many calls there are when nothing is repeated. A
    /// request that loops over items may make a few more than others, so a part does not count.
    fn attempts(&self) -> Option<u32> {
        let attempts = self.most_failing.checked_div(self.most_ok)?;
        u32::try_from(attempts).ok().filter(|attempts| *attempts >= 2)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Service {
    failures: u64,
    /// A span of it could have carried an error.
    speaks: bool,
}

impl Edges {
    pub(crate) fn add(&mut self, trace: &[Span], requests: &Requests, calls: &Calls) {
        for calls in calls.by_edge() {
            let Call { caller, callee, .. } = calls[0];
            let caller_failed = requests.failed(caller);
            let counts = self.counts.entry((trace[caller].service, callee)).or_default();
            let count = |of: &dyn Fn(&Call) -> bool| calls.iter().filter(|call| of(call)).count();
            let failures = count(&Call::failed) as u64;
            counts.remote |= count(&|call| call.remote) > 0;
            counts.calls += calls.len() as u64;
            counts.failures += failures;
            counts.at_callee += count(&|call| call.at_callee) as u64;
            counts.at_caller += count(&|call| call.at_caller) as u64;
            counts.requests += 1;
            counts.requests_with_failure += u64::from(failures > 0);
            let most = if failures > 0 { &mut counts.most_failing } else { &mut counts.most_ok };
            *most = calls.len().max(*most);
            if caller_failed {
                counts.both += failures;
                counts.requests_both += u64::from(failures > 0);
            }
        }
        for request in requests.iter() {
            let service = self.services.entry(trace[request].service).or_default();
            service.failures += u64::from(requests.failed(request));
            service.speaks |= !trace[request].flags.has(Flags::MUTE);
        }
        self.evidence.add(trace, requests, calls);
    }

    /// The edges in the order of their names.
    pub(crate) fn finish(mut self, names: &Names) -> Vec<Edge> {
        let mut edges = Vec::with_capacity(self.counts.len());
        for ((caller, callee), counts) in self.counts {
            let service = self.services.get(&caller).copied().unwrap_or_default();
            edges.push(Edge {
                caller: names.name(caller).to_owned(),
                callee: names.name(callee).to_owned(),
                remote: counts.remote,
                calls: counts.calls,
                failures: counts.failures,
                failures_at_callee: counts.at_callee,
                failures_at_caller: counts.at_caller,
                both: counts.both,
                requests: counts.requests,
                requests_with_failure: counts.requests_with_failure,
                requests_both: counts.requests_both,
                attempts: counts.attempts(),
                measured: self.evidence.measure(caller, callee),
                caller_failures: service.failures,
                mute: !service.speaks && service.failures == 0,
            });
        }
        edges.sort_by(|a, b| (&a.caller, &a.callee).cmp(&(&b.caller, &b.callee)));
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_seen_where_failing_requests_make_more_calls() {
        for (most_failing, most_ok, expected) in [
            (3, 1, Some(3)),
            (1, 1, None),
            (4, 2, Some(2)),
            // One call of a loop more, or fewer.
            (6, 5, None),
            (2, 9, None),
            // Nobody knows how many calls there are without failures.
            (3, 0, None),
            (0, 3, None),
            (usize::MAX, 1, None),
        ] {
            let counts = Counts { most_failing, most_ok, ..Counts::default() };
            assert_eq!(counts.attempts(), expected, "{most_failing} against {most_ok}");
        }
    }
}
