//! What each minute of the dump teaches about each edge (protocol §9).

use std::collections::HashMap;

use onus_core::Timestamp;
use onus_learn::{CleanCounts, EdgeCounts, Estimator, Measurement, frozen};

use super::calls::{Call, Calls};
use super::requests::Requests;
use crate::span::Span;

/// Counts by minute, of final outcomes of requests.
///
/// Minutes are those of the callers' own clocks: a clock that is off by seconds moves few requests
/// to another minute, and none to another edge.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    clean: HashMap<(u32, u64), CleanCounts>,
    failures: HashMap<(u32, u32), Vec<Failure>>,
}

/// A request in which an edge failed, in eight bytes: its minute, whether another edge failed too,
/// and whether the caller did. The minute comes first, so that they sort by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Failure(u64);

impl Failure {
    fn new(minute: u64, joint: bool, caller: bool) -> Self {
        // Minutes of microseconds leave the upper bits free.
        Self(minute << 2 | u64::from(joint) << 1 | u64::from(caller))
    }

    fn minute(self) -> u64 {
        self.0 >> 2
    }

    fn counts(self) -> EdgeCounts {
        EdgeCounts::of_request(true, self.0 & 2 != 0, self.0 & 1 != 0)
    }
}

impl Evidence {
    pub(crate) fn add(&mut self, trace: &[Span], requests: &Requests, calls: &Calls) {
        for request in requests.iter() {
            let of_request = calls.of_request(request);
            let failed = requests.failed(request);
            let caller = trace[request].service;
            let minute = trace[request].start / MINUTE_MICROS;
            if !of_request.iter().any(Call::failed) {
                *self.clean.entry((caller, minute)).or_default() += CleanCounts::of_request(failed);
                continue;
            }
            let by_edge = || of_request.chunk_by(|a, b| a.callee == b.callee);
            let any = |calls: &[Call]| calls.iter().any(Call::failed);
            let failed_edges = by_edge().filter(|calls| any(calls)).count();
            for calls in by_edge().filter(|calls| any(calls)) {
                let failure = Failure::new(minute, failed_edges > 1, failed);
                self.failures.entry((caller, calls[0].callee)).or_default().push(failure);
            }
        }
    }

    /// What is known about an edge at the end of the dump.
    pub(crate) fn measure(&mut self, caller: u32, callee: u32) -> Measurement {
        let mut minutes = self.failures.remove(&(caller, callee)).unwrap_or_default();
        minutes.sort_unstable();
        let first = minutes.first().map_or(0, |failure| failure.minute());
        let mut now = Timestamp::ZERO;
        let mut estimator = Estimator::new(now);
        for of_minute in minutes.chunk_by(|a, b| a.minute() == b.minute()) {
            let minute = of_minute[0].minute();
            let mut counts = EdgeCounts::default();
            for failure in of_minute {
                counts += failure.counts();
            }
            now = Timestamp::from_nanos((minute - first).saturating_mul(MINUTE_NANOS));
            let clean = self.clean.get(&(caller, minute)).copied().unwrap_or_default();
            estimator.minute(counts, frozen(clean), now);
        }
        estimator.measure(now)
    }
}

const MINUTE_MICROS: u64 = 60_000_000;
const MINUTE_NANOS: u64 = 60_000_000_000;
