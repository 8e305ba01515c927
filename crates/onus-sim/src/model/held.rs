//! An edge as its caller holds it in a run: the policy and state of the core.

use std::num::NonZeroU32;
use std::time::Duration;

use onus_core::{
    Backoff, BudgetConfig, CallError, DeclaredRetries, Deposit, EdgePolicy, EdgeState, ErrorSet,
    Gate, RetryBudget, RetryPolicy, Timestamp,
};

use super::config::{Config, Hindrance, Retries, Role, Setting};
use super::rules::Rules;

/// An edge as its caller holds it.
pub(super) struct HeldEdge {
    pub(super) policy: EdgePolicy,
    pub(super) state: EdgeState,
    pub(super) retries: Retries,
    /// The time at which failures are judged, where attempts start at [`Timestamp::ZERO`].
    fails_at: Timestamp,
    replayable: bool,
    closed: Gate,
}

/// What the caller's decision is told of a failed attempt besides the reply.
pub(super) struct Circumstance {
    pub(super) error: CallError,
    pub(super) replayable: bool,
    pub(super) refused: bool,
    pub(super) now: Timestamp,
}

impl HeldEdge {
    pub(super) fn new(setting: Setting, role: Role, config: &Config, rules: Rules) -> Self {
        let Config { switches, faults, .. } = *config;
        let retries = setting.retries;
        let mut retry = RetryPolicy::new(retries.attempts());
        if let Some(policy) = &mut retry {
            policy.backoff = Backoff::NONE;
            policy.errors = match retries {
                Retries::Excluded => ErrorSet::EMPTY,
                Retries::Attempts(_)
                | Retries::NotConfigured
                | Retries::BudgetDenied
                | Retries::NotReplayable
                | Retries::NoTime => covered(),
            };
            policy.budget = (retries == Retries::BudgetDenied).then_some(NOTHING);
            policy.probes = switches.probes;
            policy.gate = faults.hindrances;
        }
        let declared = DeclaredRetries { attempts: retries.attempts(), errors: covered() };
        let policy = match role.layer() {
            None => EdgePolicy { retry, ..EdgePolicy::default() },
            Some(_) => EdgePolicy {
                declared: (retries.are_made() && rules.counts_layers()).then_some(declared),
                ..EdgePolicy::default()
            },
        };
        let late = retries == Retries::NoTime;
        Self {
            policy,
            state: EdgeState::new(&policy),
            retries,
            fails_at: if late { LATE } else { Timestamp::ZERO },
            replayable: retries != Retries::NotReplayable,
            closed: if faults.hindrances { closed() } else { Gate::new() },
        }
    }

    /// What the attempt that failed met; budget and gate are set up for the decision on it.
    pub(super) fn meets(&mut self, hindrance: Hindrance, varies: bool) -> Circumstance {
        if varies {
            let denied = hindrance == Hindrance::BudgetDenied;
            let empty = denied || self.retries == Retries::BudgetDenied;
            self.state.budget = empty.then(|| RetryBudget::new(NOTHING));
            self.state.gate = if hindrance == Hindrance::Gated { self.closed } else { Gate::new() };
        }
        let excluded = hindrance == Hindrance::Excluded;
        Circumstance {
            error: CallError::Http(if excluded { EXCLUDED } else { ORDINARY }),
            replayable: self.replayable && hindrance != Hindrance::NotReplayable,
            refused: hindrance == Hindrance::Pushback,
            now: if hindrance == Hindrance::NoTime { LATE } else { self.fails_at },
        }
    }
}

/// The errors that policies retry.
fn covered() -> ErrorSet {
    let mut covered = ErrorSet::FAILURES;
    covered.remove(CallError::Http(EXCLUDED));
    covered
}

/// A gate at which the floor alone passes.
fn closed() -> Gate {
    let mut gate = Gate::new();
    while gate.allowed_permille() > 20 {
        gate.record(false);
    }
    gate
}

const ORDINARY: u16 = 503;
const EXCLUDED: u16 = 501;

/// When every call must be over.
pub(super) const DEADLINE: Timestamp = Timestamp::ZERO.saturating_add(Duration::from_secs(1));
/// Before the deadline, and too late for another attempt.
const LATE: Timestamp = Timestamp::ZERO.saturating_add(Duration::from_millis(995));

/// A budget that never has a token.
const NOTHING: BudgetConfig = BudgetConfig {
    percent: 0,
    deposit: Deposit::Request,
    min_per_second: 0,
    ttl_seconds: NonZeroU32::MIN,
};
