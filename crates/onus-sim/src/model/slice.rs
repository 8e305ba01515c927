//! Named slices of all configurations. The full product of all settings is out of reach; each
//! slice varies a few of them over every tree.

use std::ops::RangeInclusive;

use onus_core::EdgeClass;

use super::config::{Faults, Retries, Role, Setting, Switches};
use super::space::{Engine, Space, roles};
use super::topology::{Fan, Topology};

/// A named part of all configurations.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The name in reports and ids.
    pub name: &'static str,
    /// What varies in it.
    pub words: &'static str,
    /// The largest tree that is checked when 4, 5 and 6 nodes are asked for.
    largest: [usize; 3],
    space: fn(usize) -> Space,
}

impl Slice {
    /// The slice of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SLICES.iter().find(|slice| slice.name == name)
    }

    /// The numbers of nodes that are checked when up to `nodes` are asked for.
    #[must_use]
    pub fn sizes(&self, nodes: usize) -> RangeInclusive<usize> {
        let largest = self.largest[nodes.clamp(4, 6) - 4];
        2..=if self.is_of_trees() { largest.min(nodes) } else { largest }
    }

    fn is_of_trees(&self) -> bool {
        !self.name.starts_with("diamonds") && self.name != "chains"
    }

    /// The configurations with this number of nodes.
    pub(crate) fn space(&self, nodes: usize) -> Space {
        (self.space)(nodes)
    }
}

/// Every slice.
pub const SLICES: [Slice; 15] = [
    Slice {
        name: "policies-class",
        words: "{retries, none, budget denied, policy excludes} x {fail-close, fail-open}",
        largest: [4, 5, 6],
        space: |nodes| {
            let policies = [Retries::NotConfigured, Retries::BudgetDenied, Retries::Excluded];
            // Six nodes with all policies are 3.7 million configurations.
            let some = if nodes < 6 { &policies[..] } else { &policies[..1] };
            let settings = retries_and(some)
                .into_iter()
                .flat_map(|retries| [CLOSE, OPEN].map(|edge| Setting { retries, ..edge }));
            let failures_max = if nodes < 6 { u32::MAX } else { 4 };
            ordinary(nodes, settings.collect(), Faults { failures_max, ..Faults::OWN })
        },
    },
    Slice {
        name: "class-knowledge",
        words: "{fail-close, fail-open} x class {known, unknown, wrong}, with and without retries",
        largest: [4, 5, 5],
        space: |nodes| {
            let settings = KNOWLEDGE.into_iter().chain([NONE, none(OPEN)]);
            // Edges held fail-open multiply the traces of five nodes to a thousand million.
            let culprits_max = if nodes < 5 { u32::MAX } else { 2 };
            ordinary(nodes, settings.collect(), Faults { culprits_max, ..Faults::OWN })
        },
    },
    Slice {
        name: "refusals",
        words: "per attempt {excluded error, no time, not replayable, pushback, budget, gate}",
        largest: [4, 5, 5],
        space: |nodes| {
            let settings = vec![CLOSE, OPEN, NONE, with(Retries::NotReplayable)];
            let faults = Faults { hindrances: true, lost: true, culprits_max: 1, ..Faults::OWN };
            let silent_claims = Switches { silent_claims: true, ..Switches::default() };
            let switches = vec![Switches::default(), silent_claims];
            Space { switches, ..ordinary(nodes, settings, faults) }
        },
    },
    Slice {
        name: "coverage-modes",
        words: "at most two nodes {context-lost, non-cooperative, observing}; one culprit",
        largest: [4, 5, 5],
        space: |nodes| {
            let modes =
                [Role::Correlated, Role::ContextLost, Role::NonCooperative, Role::Observing];
            let settings = vec![CLOSE, NONE, Setting { held: EdgeClass::FailOpen, ..CLOSE }];
            let faults = Faults { lost: nodes < 5, culprits_max: 1, ..Faults::OWN };
            Space { roles: roles(nodes, &modes, 2), ..ordinary(nodes, settings, faults) }
        },
    },
    Slice {
        name: "lost-answers",
        words: "{retries, none, not replayable, no time}; answers get lost, nodes fail",
        largest: [4, 5, 5],
        space: |nodes| {
            let settings =
                retries_and(&[Retries::NotConfigured, Retries::NotReplayable, Retries::NoTime]);
            let settings = settings.into_iter().map(with).collect();
            let culprits_max = if nodes < 5 { u32::MAX } else { 3 };
            let faults = Faults { lost: true, culprits_max, ..Faults::OWN };
            ordinary(nodes, settings, faults)
        },
    },
    Slice {
        name: "silence",
        words: "only answers that get lost; silent-claims on and off",
        largest: [4, 5, 6],
        space: |nodes| {
            let settings = vec![CLOSE, NONE];
            let faults = Faults { own: false, lost: true, ..Faults::OWN };
            let silent_claims = Switches { silent_claims: true, ..Switches::default() };
            let probes = Switches { probes: true, ..Switches::default() };
            let switches = vec![Switches::default(), silent_claims, probes];
            Space { switches, ..ordinary(nodes, settings, faults) }
        },
    },
    Slice {
        name: "silence-coverage",
        words: "only answers that get lost; at most two nodes {context-lost, observing}",
        largest: [4, 5, 5],
        space: |nodes| {
            let modes = [
                Role::Correlated,
                Role::ContextLost,
                Role::Observing,
                Role::NonCooperative,
                Role::BlindLayer,
            ];
            let modes = if nodes < 5 { &modes[..] } else { &modes[..3] };
            let settings = [CLOSE, NONE, Setting { held: EdgeClass::FailOpen, ..CLOSE }];
            let settings = settings[..if nodes < 5 { 3 } else { 2 }].to_vec();
            let faults = Faults { own: false, lost: true, ..Faults::OWN };
            Space { roles: roles(nodes, modes, 2), ..ordinary(nodes, settings, faults) }
        },
    },
    Slice {
        name: "silence-three",
        words: "3 attempts; only answers that get lost; nodes {context-lost, observing}",
        largest: [4, 5, 5],
        space: |nodes| {
            let modes = [Role::Correlated, Role::ContextLost, Role::Observing];
            let settings = vec![with(Retries::Attempts(3)), NONE];
            let faults = Faults { own: false, lost: true, ..Faults::OWN };
            let (most, engine) = match nodes {
                ..4 => (2, Engine::Traces),
                4 => (1, Engine::Traces),
                5.. => (2, Engine::Dearest),
            };
            Space { roles: roles(nodes, &modes, most), engine, ..ordinary(nodes, settings, faults) }
        },
    },
    Slice {
        name: "dropped-calls",
        words: "{retries, none} x {fail-close, fail-open}; handlers give calls up",
        largest: [4, 5, 5],
        space: |nodes| {
            let settings = vec![CLOSE, NONE, OPEN];
            let faults = Faults { dropped: true, culprits_max: 2, ..Faults::OWN };
            ordinary(nodes, settings, faults)
        },
    },
    Slice {
        name: "layers-below",
        words: "retries by Onus, by a layer below that obeys vetoes, by a blind one, by a library",
        largest: [4, 5, 5],
        space: |nodes| {
            let modes =
                [Role::Correlated, Role::ObeyingLayer, Role::BlindLayer, Role::ObeyingLibrary];
            let settings = vec![CLOSE, NONE];
            let faults = Faults { lost: nodes < 5, culprits_max: 2, ..Faults::OWN };
            Space { roles: roles(nodes, &modes, 2), ..ordinary(nodes, settings, faults) }
        },
    },
    Slice {
        name: "three-attempts",
        words: "{3 attempts, 2 attempts, none} x {fail-close, fail-open}, answers seen and lost",
        largest: [4, 5, 5],
        space: |nodes| {
            let settings = [Retries::Attempts(3), Retries::Attempts(2), Retries::NotConfigured];
            let settings = settings.into_iter().map(with).chain([OPEN]).collect();
            let faults = Faults { lost: true, culprits_max: 2, ..Faults::OWN };
            ordinary(nodes, settings, faults)
        },
    },
    Slice {
        name: "baseline",
        words: "{2 attempts, none, budget denied} x class, coupled with a run without ownership; with fallbacks, probes, modes",
        largest: [4, 5, 5],
        space: |nodes| {
            let settings = vec![CLOSE, OPEN, NONE, with(Retries::BudgetDenied)];
            let faults = Faults { coupled: true, ..Faults::OWN };
            let modes =
                [Role::Correlated, Role::ContextLost, Role::NonCooperative, Role::Observing];
            let mut space = ordinary(nodes, settings, faults);
            if nodes < 5 {
                let wide: Vec<_> = space.topologies.iter().filter_map(with_fallback).collect();
                space.topologies.extend(wide);
                space.roles = roles(nodes, &modes, 1);
                space.switches.push(Switches { probes: true, ..Switches::default() });
            }
            space
        },
    },
    Slice {
        name: "diamonds",
        words: "two and three paths to one node, {retries, none}; nodes fail, answers get lost",
        largest: [6, 6, 6],
        space: |nodes| diamonds(nodes, Faults { lost: true, culprits_max: 1, ..Faults::OWN }),
    },
    Slice {
        name: "diamonds-silence",
        words: "two paths to one node, {retries, none}; only answers that get lost",
        largest: [5, 5, 5],
        space: |nodes| diamonds(nodes, Faults { own: false, lost: true, ..Faults::OWN }),
    },
    Slice {
        name: "chains",
        words: "chains of any set of {context-lost} or {observing} nodes, {3 attempts, 2 attempts, \
                none}; only answers that get lost; the dearest trace is computed",
        largest: [6, 9, 9],
        space: |nodes| {
            let settings = [CLOSE, NONE, with(Retries::Attempts(3))];
            let settings = settings[..if nodes < 7 { 3 } else { 2 }].to_vec();
            let faults = Faults { own: false, lost: true, ..Faults::OWN };
            let below_the_root = |role| roles(nodes - 1, &[Role::Correlated, role], nodes);
            let lost = below_the_root(Role::ContextLost);
            let observing = below_the_root(Role::Observing);
            let all = lost.into_iter().chain(observing.into_iter().skip(1));
            let with_root = all.map(|below| [&[Role::Correlated], below.as_slice()].concat());
            Space {
                topologies: vec![Topology::chain(nodes)],
                roles: with_root.collect(),
                engine: Engine::Dearest,
                ..ordinary(nodes, settings, faults)
            }
        },
    },
];

/// Every tree, all nodes correlated, no switch.
fn ordinary(nodes: usize, settings: Vec<Setting>, faults: Faults) -> Space {
    Space {
        topologies: Topology::trees(nodes),
        settings,
        roles: vec![vec![Role::Correlated; nodes]],
        switches: vec![Switches::default()],
        faults,
        engine: Engine::Traces,
    }
}

/// As many paths from the second node to the last as the number of nodes allows.
fn diamonds(nodes: usize, faults: Faults) -> Space {
    let topologies = if nodes < 5 { Vec::new() } else { Topology::diamonds(nodes - 3) };
    Space { topologies, ..ordinary(nodes, vec![CLOSE, NONE], faults) }
}

/// The same tree, with its first node of several callees using the later ones as fallbacks.
fn with_fallback(topology: &Topology) -> Option<Topology> {
    let wide = (0..topology.nodes()).find(|&node| topology.calls(node).len() > 1)?;
    let in_sequence = (0..topology.nodes()).all(|node| topology.fan(node) == Fan::Sequence);
    in_sequence.then(|| topology.clone().with_fan(wide, Fan::Fallback))
}

fn retries_and(others: &[Retries]) -> Vec<Retries> {
    [&[Retries::Attempts(2)], others].concat()
}

/// A fail-close edge of known class.
const fn with(retries: Retries) -> Setting {
    Setting { retries, ..CLOSE }
}

const fn none(edge: Setting) -> Setting {
    Setting { retries: Retries::NotConfigured, ..edge }
}

const CLOSE: Setting =
    Setting { retries: Retries::Attempts(2), open: false, held: EdgeClass::FailClose };
const OPEN: Setting = Setting { open: true, held: EdgeClass::FailOpen, ..CLOSE };
const NONE: Setting = none(CLOSE);

/// What edges are, and what they are held to be.
const KNOWLEDGE: [Setting; 6] = [
    CLOSE,
    Setting { held: EdgeClass::Unknown, ..CLOSE },
    Setting { held: EdgeClass::FailOpen, ..CLOSE },
    OPEN,
    Setting { held: EdgeClass::Unknown, ..OPEN },
    Setting { held: EdgeClass::FailClose, ..OPEN },
];
