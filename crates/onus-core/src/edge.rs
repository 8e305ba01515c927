//! An edge: one caller procedure that calls one callee procedure.

use crate::brake::Brake;
use crate::budget::RetryBudget;
use crate::gate::Gate;
use crate::policy::EdgePolicy;
use crate::probe::ProbeClock;

/// An edge within one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdgeId(pub u32);

/// What the caller does when the callee fails (protocol §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EdgeClass {
    /// The caller fails too.
    FailClose,
    /// The caller survives.
    FailOpen,
    /// Not known yet.
    #[default]
    Unknown,
}

impl EdgeClass {
    /// Whether a failure on the edge is blamed for the caller's error: all but proven fail-open.
    #[must_use]
    pub const fn is_blamed(self) -> bool {
        match self {
            Self::FailClose | Self::Unknown => true,
            Self::FailOpen => false,
        }
    }

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailClose => "fail-close",
            Self::FailOpen => "fail-open",
            Self::Unknown => "unknown",
        }
    }
}

/// What an edge remembers between calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EdgeState {
    /// The budget for retries; `None` for no limit.
    pub budget: Option<RetryBudget>,
    /// How well retries work.
    pub gate: Gate,
    /// What probes have shown.
    pub brake: Brake,
    pub(crate) probes: ProbeClock,
}

impl EdgeState {
    /// The state of an edge that has seen no call.
    #[must_use]
    pub fn new(policy: &EdgePolicy) -> Self {
        Self {
            budget: policy.retry.and_then(|retry| retry.budget).map(RetryBudget::new),
            gate: Gate::new(),
            brake: Brake::default(),
            probes: ProbeClock::default(),
        }
    }
}
