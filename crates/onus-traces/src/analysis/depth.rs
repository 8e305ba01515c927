//! How deep requests lie, and how far errors climb.

use std::collections::BTreeMap;

use super::calls::Calls;
use super::requests::Requests;
use super::tree::Tree;
use crate::span::Span;

/// How many requests, or traces, have each value. What is above [`HISTOGRAM_MAX`] counts as that.
pub type Histogram = BTreeMap<u64, u64>;

/// Distributions over all traces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    /// Requests by the requests above them.
    pub requests: Histogram,
    /// Traces by their deepest request.
    pub traces: Histogram,
    /// Requests by the requests above them that another service made: what an error climbs.
    ///
    /// A trace of a browser's session chains redirects of one service thirty deep, and no retry
    /// climbs from one to the next.
    pub hops: Histogram,
    /// Traces by their deepest request, counted so.
    pub trace_hops: Histogram,
    /// Failed requests without a failed call, by the failed requests in a row above them.
    pub error_chains: Histogram,
    /// Requests with calls, by how many.
    pub calls: Histogram,
}

impl Depths {
    pub(crate) fn add(&mut self, trace: &[Span], tree: &Tree, requests: &Requests, calls: &Calls) {
        let mut above = vec![Above::default(); trace.len()];
        let mut deepest = Above::default();
        for index in tree.order().filter(|&index| requests.begins_at(index)) {
            if let Some(parent) = tree.parent(index) {
                let caller = requests.of_span(parent);
                let Above { requests: depth, hops, failed } = above[caller];
                let other = trace[caller].service != trace[index].service;
                above[index] = Above {
                    requests: depth + 1,
                    hops: hops + u64::from(other),
                    failed: if requests.failed(caller) { failed + 1 } else { 0 },
                };
            }
            let here = above[index];
            deepest.requests = deepest.requests.max(here.requests);
            deepest.hops = deepest.hops.max(here.hops);
            count(&mut self.requests, here.requests);
            count(&mut self.hops, here.hops);
            if requests.failed(index) && !calls.failed_of(index).any {
                count(&mut self.error_chains, here.failed);
            }
        }
        count(&mut self.traces, deepest.requests);
        count(&mut self.trace_hops, deepest.hops);
        for of_request in calls.by_request() {
            count(&mut self.calls, of_request.len() as u64);
        }
    }

    /// What the errors that were seen would have cost at their origin under common policies.
    #[must_use]
    pub fn amplification(&self) -> Vec<Amplification> {
        let row = |(&chain, &requests)| Amplification { chain, requests };
        self.error_chains.iter().map(row).collect()
    }
}

/// The load that failed requests put on their origin, for each request that the origin failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amplification {
    /// Failed requests in a row above the origin's.
    pub chain: u64,
    /// How many requests of an origin had as many above them.
    pub requests: u64,
}

impl Amplification {
    /// The load if every hop makes `tries` attempts, or 1.1 for a budget of 10 %.
    #[must_use]
    pub fn every_hop(&self, tries: f64) -> f64 {
        // More hops than this exceed every number.
        tries.powi(i32::try_from(self.chain).unwrap_or(i32::MAX))
    }

    /// The load if only the origin's direct caller retries.
    #[must_use]
    pub fn owner_only(&self, tries: f64) -> f64 {
        if self.chain == 0 { 1.0 } else { tries }
    }
}

/// What is above a request.
#[derive(Clone, Copy, Default)]
struct Above {
    requests: u64,
    hops: u64,
    failed: u64,
}

fn count(histogram: &mut Histogram, value: u64) {
    *histogram.entry(value.min(HISTOGRAM_MAX)).or_default() += 1;
}

/// The largest value that is told apart, so that a chain made to harm does not fill the memory.
pub const HISTOGRAM_MAX: u64 = 9_999;
