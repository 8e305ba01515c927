//! One configuration of a call tree: what is set up on each edge and node, and which failures the
//! adversary may use.

use onus_core::{Arm, EdgeClass};

use super::topology::Topology;

/// Everything that stays the same over the traces of one tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Who calls whom.
    pub topology: Topology,
    /// What is set up on each edge.
    pub edges: Vec<Setting>,
    /// What each node does for ownership.
    pub roles: Vec<Role>,
    /// Settings of all nodes.
    pub switches: Switches,
    /// What may go wrong.
    pub faults: Faults,
}

/// An edge: what its caller may retry, what a failure does to it, and what it believes of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Setting {
    /// Whether and why not failed attempts are retried.
    pub retries: Retries,
    /// Whether the caller survives a failure of the callee.
    pub open: bool,
    /// What the caller holds the edge to be.
    pub held: EdgeClass,
}

/// Whether an edge's failed attempts are retried, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retries {
    /// Up to so many attempts.
    Attempts(u32),
    /// No policy.
    NotConfigured,
    /// A policy, and a budget that is empty.
    BudgetDenied,
    /// A policy that does not cover the callee's errors.
    Excluded,
    /// A policy, and a body that cannot be sent again.
    NotReplayable,
    /// A policy, and a deadline without room for another attempt.
    NoTime,
}

impl Retries {
    /// The attempts of the policy; 1 without one.
    #[must_use]
    pub const fn attempts(self) -> u32 {
        match self {
            Self::Attempts(attempts) => attempts,
            Self::BudgetDenied | Self::Excluded | Self::NotReplayable | Self::NoTime => 2,
            Self::NotConfigured => 1,
        }
    }

    /// Whether a failed attempt can be followed by another.
    #[must_use]
    pub const fn are_made(self) -> bool {
        matches!(self, Self::Attempts(2..))
    }
}

/// What a node does for ownership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Enforces, and ties its calls to the requests it serves.
    #[default]
    Correlated,
    /// Enforces, and can tie no call to a request.
    ContextLost,
    /// Is without Onus, or off: sends no claim, reads none, retries blindly.
    NonCooperative,
    /// Observes.
    Observing,
    /// Enforces; its retries are made by a layer below Onus that obeys vetoes.
    ObeyingLayer,
    /// Enforces; its retries are made by a layer below Onus that ignores vetoes.
    BlindLayer,
    /// Is without Onus; its retries are made by a library that obeys vetoes.
    ObeyingLibrary,
}

impl Role {
    /// How far ownership reaches at the node.
    #[must_use]
    pub const fn arm(self) -> Arm {
        match self {
            Self::Correlated | Self::ContextLost | Self::ObeyingLayer | Self::BlindLayer => {
                Arm::Enforce
            }
            Self::Observing => Arm::Observe,
            Self::NonCooperative | Self::ObeyingLibrary => Arm::Off,
        }
    }

    /// Whether the node's calls are tied to the request it serves.
    #[must_use]
    pub const fn ties(self) -> bool {
        !matches!(self, Self::ContextLost)
    }

    /// Whether a layer below makes the retries, and whether it obeys vetoes.
    #[must_use]
    pub const fn layer(self) -> Option<bool> {
        match self {
            Self::ObeyingLayer | Self::ObeyingLibrary => Some(true),
            Self::BlindLayer => Some(false),
            Self::Correlated | Self::ContextLost | Self::NonCooperative | Self::Observing => None,
        }
    }
}

/// Settings that all nodes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Switches {
    /// The setting `silent-claims`.
    pub silent_claims: bool,
    /// Whether suppressed retries are probed; every probe that may be drawn is.
    pub probes: bool,
}

/// What the adversary may do, at every attempt anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Faults {
    /// Nodes fail by themselves, after their calls.
    pub own: bool,
    /// Answers get lost.
    pub lost: bool,
    /// Handlers give calls up by a timer of their own, in an attempt or before a retry.
    pub dropped: bool,
    /// Failed attempts meet a hindrance that others of the same edge do not.
    pub hindrances: bool,
    /// The nodes at which something may go wrong, one bit each.
    pub among: u64,
    /// Whether whoever may fail does so whenever it can.
    pub always: bool,
    /// The most of them at which something goes wrong in a trace.
    pub culprits_max: u32,
    /// The most failures in a trace.
    pub failures_max: u32,
    /// Whether the same outcomes are also run without ownership.
    pub coupled: bool,
}

impl Faults {
    /// Nodes fail by themselves, at any attempt.
    pub const OWN: Self = Self {
        own: true,
        lost: false,
        dropped: false,
        hindrances: false,
        among: u64::MAX,
        always: false,
        culprits_max: u32::MAX,
        failures_max: u32::MAX,
        coupled: false,
    };
}

/// What a failed attempt may meet besides its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hindrance {
    /// Nothing.
    None,
    /// An error that the policy does not cover.
    Excluded,
    /// Too little time for another attempt.
    NoTime,
    /// A body that cannot be sent again.
    NotReplayable,
    /// A pushback that refuses.
    Pushback,
    /// An empty budget.
    BudgetDenied,
    /// A closed gate.
    Gated,
}

impl Hindrance {
    /// Every value, in the order in which the adversary tries them.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Excluded,
        Self::NoTime,
        Self::NotReplayable,
        Self::Pushback,
        Self::BudgetDenied,
        Self::Gated,
    ];
}
