//! What a property presupposes. Each proviso is needed: without it there is a counterexample.

use super::config::{Config, Role};
use super::paths::Beside;
use super::seen::Seen;
use super::topology::Fan;

/// A set of provisos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Provisos(pub(super) u32);

impl Provisos {
    /// Every node but the root has one caller.
    pub const TREE: Self = Self(1);
    /// No context is lost.
    pub const CORRELATED: Self = Self(1 << 1);
    /// Every node has Onus, and it is not off.
    pub const EVERYWHERE: Self = Self(1 << 2);
    /// Every node with Onus enforces.
    pub const ENFORCING: Self = Self(1 << 3);
    /// No fail-close edge is held fail-open.
    pub const NOT_HELD_OPEN: Self = Self(1 << 4);
    /// Retries below Onus, if any, obey vetoes.
    pub const OBEYING: Self = Self(1 << 5);
    /// Every retry of a node with Onus is made by Onus.
    pub const BY_ONUS: Self = Self(1 << 6);
    /// No node calls another one instead of a failed one.
    pub const NO_FALLBACK: Self = Self(1 << 7);
    /// The setting `silent-claims` is off.
    pub const SILENT_CLAIMS_OFF: Self = Self(1 << 8);
    /// Probes are off.
    pub const PROBES_OFF: Self = Self(1 << 9);
    /// Things go wrong at one node only.
    pub const ONE_CULPRIT: Self = Self(1 << 10);
    /// Whoever fails does so on every call.
    pub const ALWAYS: Self = Self(1 << 11);
    /// Nothing fails but answers that get lost and calls that are given up.
    pub const LOST_ONLY: Self = Self(1 << 12);
    /// No answer arrives at all.
    pub const ALL_LOST: Self = Self(1 << 13);
    /// The reasons for not retrying are those of the edge, the same at every attempt.
    pub const FIXED: Self = Self(1 << 14);
    /// No budget, gate, pushback or mark refuses a retry below.
    pub const NO_REFUSAL: Self = Self(1 << 15);
    /// No failure on an edge not known to be fail-open is survived before the node fails itself.
    pub const NOT_SWALLOWED: Self = Self(1 << 16);
    /// … nor beside another call whose failure the node does not survive.
    pub const NOT_JOINED: Self = Self(1 << 17);
    /// No node fails by several calls.
    pub const SINGLE: Self = Self(1 << 18);
    /// The same outcomes were also run without ownership.
    pub const COUPLED: Self = Self(1 << 19);

    /// Every proviso, with its words.
    pub const ALL: [(Self, &'static str); 20] = [
        (Self::TREE, "every node has one caller"),
        (Self::CORRELATED, "no context is lost"),
        (Self::EVERYWHERE, "every node has Onus, and it is not off"),
        (Self::ENFORCING, "every node enforces"),
        (Self::NOT_HELD_OPEN, "no fail-close edge is held fail-open"),
        (Self::OBEYING, "layers below Onus obey vetoes"),
        (Self::BY_ONUS, "Onus makes every retry"),
        (Self::NO_FALLBACK, "there are no fallbacks"),
        (Self::SILENT_CLAIMS_OFF, "silent-claims is off"),
        (Self::PROBES_OFF, "probes are off"),
        (Self::ONE_CULPRIT, "things go wrong at one node"),
        (Self::ALWAYS, "it fails on every call"),
        (Self::LOST_ONLY, "only lost answers and calls given up are failures"),
        (Self::ALL_LOST, "no answer arrives"),
        (Self::FIXED, "the reasons for not retrying are properties of the edge"),
        (Self::NO_REFUSAL, "no budget, gate, pushback or mark refuses a retry"),
        (
            Self::NOT_SWALLOWED,
            "who fails by itself has survived no failure on an edge not known to be fail-open",
        ),
        (Self::NOT_JOINED, "who fails by a call has survived none on another such edge"),
        (Self::SINGLE, "no node fails by several calls"),
        (Self::COUPLED, "the outcomes are those of a run without ownership"),
    ];

    /// Those of `self` and those of `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of `self` that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those of `self` that are in `other`.
    #[must_use]
    pub const fn restricted_to(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` are in `self`.
    #[must_use]
    pub const fn include(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// One after the other, with the words.
    pub fn each(self) -> impl Iterator<Item = (Self, &'static str)> {
        Self::ALL.into_iter().filter(move |(proviso, _)| self.include(*proviso))
    }

    /// Those that a configuration meets; what only traces decide is not among them.
    pub(crate) fn of_config(config: &Config) -> Self {
        let roles = || config.roles.iter().copied();
        let no = |role: Role| roles().all(|other| other != role);
        let held_open = config.edges.iter().any(|edge| !edge.open && !edge.held.is_blamed());
        let nodes = 0..config.topology.nodes();
        let fallback = nodes.into_iter().any(|node| config.topology.fan(node) == Fan::Fallback);
        Self::gather([
            (Self::TREE, config.topology.is_tree()),
            (Self::CORRELATED, no(Role::ContextLost)),
            (Self::EVERYWHERE, no(Role::NonCooperative) && no(Role::ObeyingLibrary)),
            (Self::ENFORCING, no(Role::Observing)),
            (Self::NOT_HELD_OPEN, !held_open),
            (Self::OBEYING, no(Role::BlindLayer)),
            (Self::BY_ONUS, roles().all(|role| role.layer().is_none())),
            (Self::NO_FALLBACK, !fallback),
            (Self::SILENT_CLAIMS_OFF, !config.switches.silent_claims),
            (Self::PROBES_OFF, !config.switches.probes),
            (Self::COUPLED, config.faults.coupled),
        ])
    }

    /// Those that a trace meets; those of at-least-once are judged per failure.
    pub(crate) fn of_trace(seen: &Seen) -> Self {
        let culprits = seen.culprits();
        let always = culprits.0 & seen.spared.0 == 0 && (seen.lost.0 & seen.answered.0 == 0);
        Self::gather([
            (Self::ONE_CULPRIT, culprits.count() <= 1),
            (Self::ALWAYS, always),
            (Self::LOST_ONLY, seen.own.is_empty()),
            (Self::ALL_LOST, seen.answered.0 & !1 == 0),
            (Self::FIXED, !seen.hindered),
        ])
    }

    /// Those that are judged for each failure that nobody above can retry any more.
    pub(crate) const OF_FAILURES: Self =
        Self::NO_REFUSAL.and(Self::NOT_SWALLOWED).and(Self::NOT_JOINED).and(Self::SINGLE);

    /// Those that configurations decide.
    pub(crate) const OF_CONFIGS: Self = Self((1 << 10) - 1).and(Self::COUPLED);

    /// Those that a whole trace decides.
    pub(crate) const OF_TRACES: Self =
        Self((1 << 20) - 1).without(Self::OF_CONFIGS).without(Self::OF_FAILURES);

    /// The events that must not stand beside a failure.
    pub(crate) fn excluded_events(self) -> Beside {
        let mut events = Beside::default();
        for (proviso, event) in [
            (Self::NO_REFUSAL, Beside::REFUSAL),
            (Self::NOT_SWALLOWED, Beside::SWALLOWED_OWN),
            (Self::NOT_JOINED, Beside::SWALLOWED_OTHER),
            (Self::SINGLE, Beside::SEVERAL),
        ] {
            if self.include(proviso) {
                events = events.with(event);
            }
        }
        events
    }

    fn gather<const N: usize>(provisos: [(Self, bool); N]) -> Self {
        let met = provisos.into_iter().filter(|(_, met)| *met);
        met.fold(Self::default(), |all, (proviso, _)| all.and(proviso))
    }
}
