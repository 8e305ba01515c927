//! What came of it all.

use crate::analysis::{Calls, Claims, Depths, Edge, Requests, Tree};
use crate::span::{Flags, Span};
use crate::trouble::{Skipped, Warning};

/// Everything that the files show.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The edges, in the order of callers and callees.
    pub edges: Vec<Edge>,
    /// Services with failed requests, in the order of their names.
    pub claims: Vec<Claims>,
    /// How deep requests lie.
    pub depths: Depths,
    /// Totals.
    pub summary: Summary,
    /// What could not be used.
    pub skipped: Skipped,
    /// What a reader should know, with places.
    pub warnings: Vec<Warning>,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Traces.
    pub traces: u64,
    /// … with an error in any span.
    pub traces_with_error: u64,
    /// Spans, each side of a call counted.
    pub spans: u64,
    /// Records that were merged into others of the same span.
    pub merged: u64,
    /// Spans that carry an error, or are listed.
    pub error_spans: u64,
    /// Spans whose parent is in no file.
    pub orphans: u64,
    /// Services; all that have no name are one.
    pub services: u64,
    /// Requests.
    pub requests: u64,
    /// … that failed.
    pub failed_requests: u64,
    /// Requests that nobody's span caused.
    pub roots: u64,
    /// … that failed.
    pub failed_roots: u64,
    /// Calls whose callee has neither a span nor a name.
    pub unnamed_calls: u64,
    /// Edges.
    pub edges: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, trace: &[Span], tree: &Tree, requests: &Requests, calls: &Calls) {
        let bad = |span: &Span| span.flags.has(Flags::ERROR) || span.flags.has(Flags::LISTED);
        let errors = trace.iter().filter(|span| bad(span)).count() as u64;
        self.traces += 1;
        self.traces_with_error += u64::from(errors > 0);
        self.error_spans += errors;
        self.unnamed_calls += calls.unnamed;
        for request in requests.iter() {
            let failed = u64::from(requests.failed(request));
            self.requests += 1;
            self.failed_requests += failed;
            if tree.parent(request).is_none() {
                self.roots += 1;
                self.failed_roots += failed;
            }
        }
        let orphan =
            |(index, span): &(usize, &Span)| span.parent != 0 && tree.parent(*index).is_none();
        self.orphans += trace.iter().enumerate().filter(orphan).count() as u64;
    }
}
