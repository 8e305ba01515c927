//! The properties, in words: all of the protocol's section 11 with their provisos.

use super::bounds::Case;
use super::proviso::Provisos;
use super::seen::Seen;

/// A property that every trace has which meets its provisos.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// The name in reports and ids.
    pub name: &'static str,
    /// What holds.
    pub words: &'static str,
    /// What it presupposes.
    pub needs: Provisos,
    breaks: fn(&Case<'_>, &Seen, Provisos) -> bool,
}

impl Property {
    /// The same without one of its provisos.
    #[must_use]
    pub fn without(self, proviso: Provisos) -> Self {
        Self { needs: self.needs.without(proviso), ..self }
    }

    /// Whether a trace breaks the property, its provisos met.
    pub(crate) fn is_broken(&self, case: &Case<'_>, seen: &Seen) -> bool {
        (self.breaks)(case, seen, self.needs)
    }

    /// Every property.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::from(LOAD);
        all.extend(SILENCE);
        all.extend(CLAIMS);
        all
    }

    /// The property of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|property| property.name == name)
    }
}

/// All nodes are correlated, have Onus and enforce.
const COVERED: Provisos = Provisos::CORRELATED.and(Provisos::EVERYWHERE).and(Provisos::ENFORCING);
/// What every bound on a culprit that answers presupposes.
const BOUNDED: Provisos = COVERED
    .and(Provisos::TREE)
    .and(Provisos::NOT_HELD_OPEN)
    .and(Provisos::OBEYING)
    .and(Provisos::SILENT_CLAIMS_OFF)
    .and(Provisos::PROBES_OFF);

/// Bounds where errors are answers.
const LOAD: [Property; 8] = [
    Property {
        name: "one-culprit",
        words: "no node gets more than R requests",
        needs: BOUNDED.and(Provisos::ONE_CULPRIT).and(Provisos::FIXED),
        breaks: |case, seen, _| exceeds(seen, |_| case.attempts),
    },
    Property {
        name: "several-culprits",
        words: "c culprits: no node at depth d gets more than R^min(d, c) requests",
        needs: BOUNDED.and(Provisos::FIXED),
        breaks: |case, seen, _| {
            let culprits = seen.culprits().count();
            exceeds(seen, |node| case.for_culprits(node, culprits))
        },
    },
    Property {
        name: "varying-reasons",
        words: "no node at depth d gets more than 1 + d(R-1) requests",
        needs: BOUNDED.and(Provisos::ONE_CULPRIT),
        breaks: |case, seen, _| exceeds(seen, |node| case.linear(node)),
    },
    Property {
        name: "context-loss",
        words: "k context-lost services above the culprit: no more than R^(k+1) requests",
        needs: BOUNDED
            .without(Provisos::CORRELATED)
            .and(Provisos::ONE_CULPRIT)
            .and(Provisos::FIXED),
        breaks: |case, seen, _| for_culprit(seen, |culprit, _| case.for_context_loss(culprit)),
    },
    Property {
        name: "sources-and-blind-retriers",
        words: "S claim sources and Bl blind retriers: no more than R^(S+Bl) requests",
        needs: BOUNDED
            .without(COVERED)
            .without(Provisos::OBEYING)
            .and(Provisos::ENFORCING)
            .and(Provisos::BY_ONUS)
            .and(Provisos::ONE_CULPRIT)
            .and(Provisos::FIXED),
        breaks: |case, seen, _| for_culprit(seen, |culprit, _| case.for_sources(culprit)),
    },
    Property {
        name: "storm-radius",
        words: "no node gets more than the product of the multiplying edges above it",
        needs: RADIUS,
        breaks: |case, seen, _| for_culprit(seen, |culprit, node| case.for_radius(culprit, node)),
    },
    Property {
        name: "storm-radius-reached",
        words: "a culprit that fails on every call gets exactly that product",
        needs: RADIUS.and(Provisos::ALWAYS),
        breaks: |case, seen, _| {
            let culprits = seen.culprits();
            let mut nodes = (0..seen.requests.len()).filter(|&node| culprits.has(node));
            nodes.any(|culprit| {
                u64::from(seen.requests[culprit]) != case.for_radius(culprit, culprit)
            })
        },
    },
    Property {
        name: "several-paths",
        words: "m paths to the culprit: no more than m * R requests",
        needs: BOUNDED
            .without(Provisos::TREE)
            .and(Provisos::ONE_CULPRIT)
            .and(Provisos::ALWAYS)
            .and(Provisos::FIXED),
        breaks: |case, seen, _| for_culprit(seen, |_, node| case.ways(node) * case.attempts),
    },
];

/// What the walk of section 12 presupposes.
const RADIUS: Provisos = Provisos::TREE
    .and(Provisos::BY_ONUS)
    .and(Provisos::SILENT_CLAIMS_OFF)
    .and(Provisos::PROBES_OFF)
    .and(Provisos::ONE_CULPRIT)
    .and(Provisos::FIXED);

/// What bounds with the mark presuppose.
const MARKED: Provisos = COVERED
    .and(Provisos::TREE)
    .and(Provisos::NOT_HELD_OPEN)
    .and(Provisos::BY_ONUS)
    .and(Provisos::PROBES_OFF)
    .and(Provisos::LOST_ONLY);

/// Bounds where answers are lost.
const SILENCE: [Property; 5] = [
    Property {
        name: "mark",
        words: "no node at depth d gets more than 1 + d(R-1) requests",
        needs: MARKED,
        breaks: |case, seen, _| exceeds(seen, |node| case.linear(node)),
    },
    Property {
        name: "mark-and-context-loss",
        words: "no node gets more than the product of R(1+(l-1)(R-1)) over the segments that end \
                in a context loss, times the last: the same with a context loss below, else \
                1+l(R-1)",
        needs: MARKED.without(Provisos::CORRELATED),
        breaks: |case, seen, _| exceeds(seen, |node| case.for_lost_segments(node)),
    },
    Property {
        name: "mark-and-timeouts",
        words: "no node gets more than the product of 1+l(R-1) over the segments between context \
                losses",
        needs: MARKED
            .without(Provisos::CORRELATED)
            .without(Provisos::NOT_HELD_OPEN)
            .without(Provisos::PROBES_OFF)
            .without(Provisos::LOST_ONLY)
            .and(Provisos::ALL_LOST),
        breaks: |case, seen, _| exceeds(seen, |node| case.for_timeouts(node)),
    },
    Property {
        name: "mark-and-observers",
        words: "k observing retriers above: no node at depth d gets more than \
                R^k * (1+(d-k)(R-1)) requests",
        needs: MARKED.without(Provisos::ENFORCING),
        breaks: |case, seen, _| exceeds(seen, |node| case.for_observers(node)),
    },
    Property {
        name: "silent-claims",
        words: "one node that never answers: no node gets more than R+1 requests",
        needs: MARKED.and(Provisos::ONE_CULPRIT),
        breaks: |case, seen, _| exceeds(seen, |_| case.attempts + 1),
    },
];

/// What claims promise.
const CLAIMS: [Property; 4] = [
    Property {
        name: "at-least-once-weak",
        words: "where a retry is possible on some path to a culprit, one is made on such a path",
        needs: Provisos::NO_REFUSAL.and(Provisos::NOT_SWALLOWED).and(Provisos::NOT_JOINED),
        breaks: |_, seen, needs| seen.settled.breaks_weakly(needs.excluded_events()),
    },
    Property {
        name: "at-least-once-strong",
        words: "a retry is made on every path to a culprit on which one is possible",
        needs: Provisos::NO_REFUSAL
            .and(Provisos::NOT_SWALLOWED)
            .and(Provisos::NOT_JOINED)
            .and(Provisos::SINGLE),
        breaks: |_, seen, needs| seen.settled.breaks_strongly(needs.excluded_events()),
    },
    Property {
        name: "certificate",
        words: "below an unclaimed error a retry was made or deliberately refused",
        needs: Provisos(0),
        breaks: |_, seen, _| seen.certificate_broken,
    },
    Property {
        name: "never-more",
        words: "no node gets more requests than without ownership, for the same outcomes",
        needs: COVERED.and(Provisos::NO_FALLBACK).and(Provisos::COUPLED),
        breaks: |_, seen, _| {
            let both = seen.requests.iter().zip(&seen.baseline);
            both.into_iter().any(|(with, without)| with > without)
        },
    },
];

fn exceeds(seen: &Seen, bound: impl Fn(usize) -> u64) -> bool {
    let requests = seen.requests.iter().enumerate();
    requests.skip(1).any(|(node, &requests)| u64::from(requests) > bound(node))
}

/// Whether the bound of every culprit is exceeded.
fn for_culprit(seen: &Seen, bound: impl Fn(usize, usize) -> u64) -> bool {
    let culprits = seen.culprits();
    let mut nodes = (0..seen.requests.len()).filter(|&node| culprits.has(node));
    !culprits.is_empty() && nodes.all(|culprit| exceeds(seen, |node| bound(culprit, node)))
}
