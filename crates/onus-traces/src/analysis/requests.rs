//! Requests: the connected spans of one service, and who is to blame for those that failed.

use std::collections::BTreeMap;

use super::calls::Calls;
use super::tree::Tree;
use crate::names::Names;
use crate::span::{Flags, Kind, Span};

/// The requests of one trace, each known by its topmost span.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The topmost span of each span's request.
    top: Vec<u32>,
    /// Whether the request of a topmost span failed.
    failed: Vec<bool>,
}

impl Requests {
    /// A request begins where the service changes, and where a callee's span says that it does.
    ///
    /// It failed if its topmost span carries an error: errors below may have been survived. A list
    /// from elsewhere names the spans that were active, so each of them stands for its request.
    pub(crate) fn of(trace: &[Span], tree: &Tree) -> Self {
        let mut top = vec![0; trace.len()];
        let mut failed = vec![false; trace.len()];
        for index in tree.order() {
            let span = &trace[index];
            let above = tree.parent(index).filter(|&parent| {
                span.kind != Kind::Callee && span.service == trace[parent].service
            });
            let begin = above.map_or(index, |parent| top[parent] as usize);
            top[index] = begin as u32;
            failed[begin] |=
                span.flags.has(Flags::LISTED) || (begin == index && span.flags.has(Flags::ERROR));
        }
        Self { top, failed }
    }

    /// The request of a span.
    pub(crate) fn of_span(&self, span: usize) -> usize {
        self.top[span] as usize
    }

    /// Whether a request begins at a span.
    pub(crate) fn begins_at(&self, span: usize) -> bool {
        self.of_span(span) == span
    }

    /// Whether a request failed.
    pub(crate) fn failed(&self, request: usize) -> bool {
        self.failed[request]
    }

    /// All requests.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.top.len()).filter(|&span| self.begins_at(span))
    }

    /// Adds who would claim the failed requests: a service whose outbound calls all went well has
    /// nobody else to blame.
    pub(crate) fn claims(&self, trace: &[Span], calls: &Calls, into: &mut BTreeMap<u32, Claims>) {
        for request in self.iter().filter(|&request| self.failed(request)) {
            let claims = into.entry(trace[request].service).or_default();
            let failed = calls.failed_of(request);
            claims.failed += 1;
            *if failed.any { &mut claims.unclaimed } else { &mut claims.claimed } += 1;
            *if failed.tracked {
                &mut claims.unclaimed_if_databases_untracked
            } else {
                &mut claims.claimed_if_databases_untracked
            } += 1;
        }
    }
}

/// The failed requests of a service, by who would own them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The service.
    pub service: String,
    /// Its requests that failed.
    pub failed: u64,
    /// … without a failed outbound call: it would claim them.
    pub claimed: u64,
    /// … with one: it would not.
    pub unclaimed: u64,
    /// Those it would claim if calls of databases and others without spans of their own did not
    /// pass Onus.
    pub claimed_if_databases_untracked: u64,
    /// … and those it would not.
    pub unclaimed_if_databases_untracked: u64,
}

impl Claims {
    /// The claims of all services in the order of their names.
    pub(crate) fn named(claims: BTreeMap<u32, Self>, names: &Names) -> Vec<Self> {
        let named = claims
            .into_iter()
            .map(|(service, claims)| Self { service: names.name(service).to_owned(), ..claims });
        let mut named: Vec<_> = named.collect();
        named.sort_by(|one, other| one.service.cmp(&other.service));
        named
    }
}
