//! Whose child each span of a trace is, and the order from parents to children.

use std::ops::Range;

use crate::span::{Kind, Span};
use crate::trouble::{Trouble, Troubles};

/// The parents of the spans of one trace, which are in the order of their ids.
#[derive(Debug)]
pub(crate) struct Tree {
    parents: Vec<u32>,
    /// All spans, each behind its parent.
    order: Vec<u32>,
}

impl Tree {
    /// Finds the parents, and notes orphans and cycles.
    pub(crate) fn of(trace: &[Span], troubles: &mut Troubles) -> Self {
        let parent = |(index, span): (usize, &Span)| {
            let parent = parent_of(trace, index);
            if parent.is_none() && span.parent != 0 {
                troubles.at(span.file, span.at, Trouble::Orphan);
            }
            parent.map_or(NONE, |parent| parent as u32)
        };
        let parents = trace.iter().enumerate().map(parent).collect();
        let mut tree = Self { parents, order: Vec::with_capacity(trace.len()) };
        tree.sort(trace, troubles);
        tree
    }

    /// The parent of a span.
    pub(crate) fn parent(&self, span: usize) -> Option<usize> {
        let parent = self.parents[span];
        (parent != NONE).then_some(parent as usize)
    }

    /// All spans, each behind its parent.
    pub(crate) fn order(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.order.iter().map(|&span| span as usize)
    }

    /// Goes up from each span to one whose place is known, and back down. A span that is met twice
    /// on the way up is its own ancestor.
    fn sort(&mut self, trace: &[Span], troubles: &mut Troubles) {
        let mut state = vec![State::Unseen; trace.len()];
        let mut path = Vec::new();
        for start in 0..trace.len() {
            let mut span = start;
            while state[span] == State::Unseen {
                state[span] = State::OnPath;
                path.push(span as u32);
                match self.parent(span) {
                    Some(parent) if state[parent] == State::OnPath => {
                        self.parents[span] = NONE;
                        troubles.at(trace[span].file, trace[span].at, Trouble::Cycle);
                    }
                    Some(parent) => span = parent,
                    None => {}
                }
            }
            for &span in &path {
                state[span as usize] = State::Placed;
            }
            self.order.extend(path.drain(..).rev());
        }
    }

    /// Notes each request of another service that begins before the span that made it.
    pub(crate) fn note_skew(&self, trace: &[Span], troubles: &mut Troubles) {
        for (index, span) in trace.iter().enumerate() {
            let Some(parent) = self.parent(index) else { continue };
            let parent = &trace[parent];
            let known = span.start != 0 && parent.start != 0;
            if known && span.service != parent.service && span.start < parent.start {
                troubles.at(span.file, span.at, Trouble::Skew);
            }
        }
    }
}

/// A callee that shares its id with its caller has it as parent. Of several spans with the parent's
/// id the parent is the one of the child's own service, else a callee: what a shared id stands for
/// to the spans below it.
fn parent_of(trace: &[Span], index: usize) -> Option<usize> {
    let span = &trace[index];
    if span.kind == Kind::Callee {
        let twins = Namesakes::of(trace, span.id);
        if twins.callees.end < twins.others.end {
            return Some(twins.others.start);
        }
    }
    if span.parent == 0 {
        return None;
    }
    let Namesakes { callees, others } = Namesakes::of(trace, span.parent);
    let own = |side: Range<usize>| {
        let key = |span: &Span| (span.service == 0, span.service);
        let found = trace[side.clone()].binary_search_by_key(&key(span), key);
        found.ok().map(|at| side.start + at)
    };
    let first = callees.start;
    let any = (first < others.end).then_some(first);
    own(callees).or_else(|| own(others)).or(any)
}

/// The spans of one id: callees, then others, each side in the order of services.
struct Namesakes {
    callees: Range<usize>,
    others: Range<usize>,
}

impl Namesakes {
    fn of(trace: &[Span], id: u64) -> Self {
        let from = trace.partition_point(|span| span.id < id);
        let to = from + trace[from..].partition_point(|span| span.id == id);
        let between = from + trace[from..to].partition_point(|span| span.kind == Kind::Callee);
        Self { callees: from..between, others: between..to }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    OnPath,
    Placed,
}

const NONE: u32 = u32::MAX;
