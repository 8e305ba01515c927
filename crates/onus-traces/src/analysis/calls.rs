//! Calls: from a request to the request it caused, or to one that only its caller knows of.

use super::requests::Requests;
use super::tree::Tree;
use crate::span::{Flags, Kind, Span};

/// The calls of one trace.
#[derive(Debug)]
pub(crate) struct Calls {
    /// In the order of their callers, and of the callees of each.
    list: Vec<Call>,
    /// Calls whose callee has neither a span nor a name.
    pub(crate) unnamed: u64,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The request that made it.
    pub(crate) caller: usize,
    /// The service that it went to.
    pub(crate) callee: u32,
    /// Whether the callee has no span of its own.
    pub(crate) remote: bool,
    /// Whether the callee's request failed.
    pub(crate) at_callee: bool,
    /// Whether the caller's span of the call carries an error.
    pub(crate) at_caller: bool,
}

impl Call {
    /// A call failed if either side says so.
    pub(crate) fn failed(&self) -> bool {
        self.at_callee || self.at_caller
    }
}

/// Which calls of a request failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failed {
    /// One did.
    pub(crate) any: bool,
    /// One did whose callee has a span of its own.
    pub(crate) tracked: bool,
}

impl Calls {
    pub(crate) fn of(trace: &[Span], tree: &Tree, requests: &Requests) -> Self {
        let mut list = Vec::new();
        let mut unnamed = 0;
        let caused = caused(trace.len(), tree, requests);
        for (index, span) in trace.iter().enumerate() {
            let parent = tree.parent(index);
            if requests.begins_at(index)
                && let Some(parent) = parent
            {
                let of_call = &trace[parent];
                list.push(Call {
                    caller: requests.of_span(parent),
                    callee: span.service,
                    remote: false,
                    at_callee: requests.failed(index),
                    at_caller: of_call.kind == Kind::Caller && of_call.flags.has(Flags::ERROR),
                });
            } else if span.kind == Kind::Caller && !caused[index] {
                if span.peer == 0 {
                    unnamed += 1;
                    continue;
                }
                list.push(Call {
                    caller: requests.of_span(index),
                    callee: span.peer,
                    remote: true,
                    at_callee: false,
                    at_caller: span.flags.has(Flags::ERROR),
                });
            }
        }
        list.sort_unstable_by_key(|call| (call.caller, call.callee));
        Self { list, unnamed }
    }

    /// The calls of each request to each callee.
    pub(crate) fn by_edge(&self) -> impl Iterator<Item = &[Call]> {
        self.list.chunk_by(|a, b| (a.caller, a.callee) == (b.caller, b.callee))
    }

    /// The calls of each request.
    pub(crate) fn by_request(&self) -> impl Iterator<Item = &[Call]> {
        self.list.chunk_by(|a, b| a.caller == b.caller)
    }

    /// The calls of one request.
    pub(crate) fn of_request(&self, request: usize) -> &[Call] {
        let from = self.list.partition_point(|call| call.caller < request);
        let calls = &self.list[from..];
        &calls[..calls.partition_point(|call| call.caller == request)]
    }

    /// Which calls of a request failed.
    pub(crate) fn failed_of(&self, request: usize) -> Failed {
        let mut failed = Failed::default();
        for call in self.of_request(request).iter().filter(|call| call.failed()) {
            failed.any = true;
            failed.tracked |= !call.remote;
        }
        failed
    }
}

/// Whether a request begins somewhere below each span, within the span's own request.
fn caused(spans: usize, tree: &Tree, requests: &Requests) -> Vec<bool> {
    let mut caused = vec![false; spans];
    // Children stand behind their parents.
    for index in tree.order().rev() {
        if let Some(parent) = tree.parent(index) {
            caused[parent] |= requests.begins_at(index) || caused[index];
        }
    }
    caused
}
