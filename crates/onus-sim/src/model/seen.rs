//! What a trace came to, and its events for those who want to read it.

use onus_core::{CalleeClaim, Claim, ClaimReason, Stop};

use super::paths::Settled;

/// What was seen of one trace: all that properties look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The requests that each node handled.
    pub(crate) requests: Vec<u32>,
    /// The same without ownership, where outcomes are coupled.
    pub(crate) baseline: Vec<u32>,
    /// Nodes that failed by themselves.
    pub(crate) own: Nodes,
    /// Nodes of which an answer was lost.
    pub(crate) lost: Nodes,
    /// Nodes of which an answer was no longer waited for.
    pub(crate) dropped: Nodes,
    /// Nodes that could have failed, and did not.
    pub(crate) spared: Nodes,
    /// Nodes of which an answer arrived.
    pub(crate) answered: Nodes,
    /// How often something went wrong.
    pub(crate) failures: u32,
    /// Whether an attempt met a hindrance that others of its edge did not.
    pub(crate) hindered: bool,
    /// Whether an error was unclaimed, and below it no retry was made or refused.
    pub(crate) certificate_broken: bool,
    /// The failures that nobody above could retry any more.
    pub(crate) settled: Settled,
}

impl Seen {
    pub(crate) fn clear(&mut self, nodes: usize) {
        let requests = std::mem::take(&mut self.requests);
        let baseline = std::mem::take(&mut self.baseline);
        *self = Self { requests, baseline, ..Self::default() };
        self.requests.clear();
        self.requests.resize(nodes, 0);
    }

    /// The dearest of all traces in which only answers get lost, no matter which.
    pub(crate) fn dearest(nodes: usize) -> Self {
        let all = Nodes(u64::MAX);
        let requests = vec![0; nodes];
        Self { requests, lost: all, spared: all, answered: all, ..Self::default() }
    }

    /// The nodes at which something went wrong.
    pub(crate) fn culprits(&self) -> Nodes {
        Nodes(self.own.0 | self.lost.0 | self.dropped.0)
    }
}

/// A set of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nodes(pub(crate) u64);

impl Nodes {
    pub(crate) const fn add(&mut self, node: usize) {
        self.0 |= 1 << node;
    }

    pub(crate) const fn has(self, node: usize) -> bool {
        self.0 & (1 << node) != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// Something that happens in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An attempt is sent.
    Sent { edge: usize, number: u32, marked: bool },
    /// A node has done its work, and answers or does not.
    Answers { node: usize, fate: Fate, claim: Option<(Claim, ClaimReason)> },
    /// An attempt has failed, and its caller has decided.
    Decided { edge: usize, reads: CalleeClaim, stop: Option<Stop> },
    /// The layer below the caller tries again.
    Layer { edge: usize },
    /// The handler gives the call up.
    Dropped { edge: usize, waits: bool },
}

/// How a node's work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It answers.
    Ok,
    /// It fails by itself.
    Own,
    /// It does not survive the failure of a call.
    Passed,
    /// Its answer gets lost.
    Lost,
}

/// Who wants to read events.
pub(crate) trait Log {
    /// Whether anybody reads.
    const READS: bool;

    fn add(&mut self, event: Event);

    fn clear(&mut self);
}

impl Log for () {
    const READS: bool = false;

    fn add(&mut self, _: Event) {}

    fn clear(&mut self) {}
}

impl Log for Vec<Event> {
    const READS: bool = true;

    fn add(&mut self, event: Event) {
        self.push(event);
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}
