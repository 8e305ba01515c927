//! From spans to what they show: who called whom, what failed, and who failed with it.

mod calls;
mod depth;
mod edges;
mod evidence;
mod merge;
mod requests;
mod tree;

pub(crate) use calls::Calls;
pub use depth::{Amplification, Depths, HISTOGRAM_MAX, Histogram};
pub use edges::Edge;
pub use requests::Claims;
pub(crate) use requests::Requests;
pub(crate) use tree::Tree;

use std::collections::{BTreeMap, HashSet};

use crate::collect::Collector;
use crate::report::{Report, Summary};
use crate::span::{Flags, Span};
use crate::trouble::Trouble;

use edges::Edges;

/// What the caller of the library decides about reading errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Whether errors count as failures whose status calls them none of the callee's: 404 and its
    /// like, and cancelled calls.
    pub client_errors: bool,
}

/// Counts everything that was collected.
pub(crate) fn report(mut collector: Collector, reading: Reading) -> Report {
    let read = collector.spans.len() as u64;
    apply_list(&mut collector);
    let client_errors = apply_reading(&mut collector.spans, reading);
    merge::merge(&mut collector.spans);
    let spans = &collector.spans[..];

    let mut summary = Summary {
        spans: spans.len() as u64,
        merged: read - spans.len() as u64,
        ..Summary::default()
    };
    let mut edges = Edges::default();
    let mut claims = BTreeMap::new();
    let mut depths = Depths::default();
    let mut services = vec![false; collector.names.len()];
    for trace in spans.chunk_by(|a, b| a.trace == b.trace) {
        let tree = Tree::of(trace, &mut collector.troubles);
        let requests = Requests::of(trace, &tree);
        let calls = Calls::of(trace, &tree, &requests);
        summary.add(trace, &tree, &requests, &calls);
        edges.add(trace, &requests, &calls);
        requests.claims(trace, &calls, &mut claims);
        depths.add(trace, &tree, &requests, &calls);
        for span in trace {
            services[span.service as usize] = true;
        }
        tree.note_skew(trace, &mut collector.troubles);
    }
    summary.services = services.iter().filter(|seen| **seen).count() as u64;

    let names = &collector.names;
    let edges = edges.finish(names);
    summary.edges = edges.len() as u64;
    let claims = Claims::named(claims, names);
    let troubles = &mut collector.troubles;
    if client_errors > 0 {
        troubles.whole(Trouble::ClientErrors { spans: client_errors });
    }
    if summary.traces >= MANY && summary.traces == summary.traces_with_error {
        troubles.whole(Trouble::OnlyFailedTraces { traces: summary.traces });
    }
    let silent: HashSet<&str> = edges
        .iter()
        .filter(|edge| edge.failures > 0 && edge.caller_failures == 0)
        .map(|edge| edge.caller.as_str())
        .collect();
    if !silent.is_empty() {
        let mut services: Vec<_> = silent.into_iter().map(ToOwned::to_owned).collect();
        services.sort_unstable();
        troubles.whole(Trouble::SilentCallers { services });
    }
    let skipped = troubles.skipped;
    let warnings = collector.troubles.warnings(&collector.files);
    Report { edges, claims, depths, summary, skipped, warnings }
}

/// Marks the spans that a list from elsewhere calls failed.
fn apply_list(collector: &mut Collector) {
    if collector.listed.is_empty() {
        return;
    }
    let mut found = HashSet::new();
    for span in &mut collector.spans {
        let own = span.trace ^ crate::id::of_file(span.file);
        let keys = [(span.trace, span.id), (own, span.id), (0, span.id)];
        for key in keys.into_iter().filter(|key| collector.listed.contains(key)) {
            span.flags = span.flags.with(Flags::LISTED);
            found.insert(key);
        }
    }
    let missing = collector.listed.len() - found.len();
    if missing > 0 {
        collector.troubles.whole(Trouble::NotInDump { spans: missing as u64 });
    }
}

/// Leaves only errors that are failures, and counts the others.
fn apply_reading(spans: &mut [Span], reading: Reading) -> u64 {
    let mut others = 0;
    if !reading.client_errors {
        for span in spans {
            if span.flags.has(Flags::ERROR) && span.flags.has(Flags::NOT_A_FAILURE) {
                span.flags = span.flags.without(Flags::ERROR);
                others += 1;
            }
        }
    }
    others
}

/// Fewer traces may all have an error by chance.
const MANY: u64 = 10;
