//! A retry policy as it is meant: the shipped decisions with their settings, or somebody else's.

mod named;

use onus_core::{Backoff, BudgetConfig, CallError, EdgePolicy, RetryPolicy};

pub(crate) use named::resolve;

use super::rivals::RivalKind;

/// A policy that is compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Policy {
    pub(crate) name: String,
    /// Which calls are retried at all.
    pub(crate) scope: Scope,
    pub(crate) kind: Kind,
}

/// Which calls are retried at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// Those of services that requests from outside reach.
    Top,
    /// Those of these services.
    Into(Vec<usize>),
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The code that production runs.
    Shipped(Shipped),
    Rival(RivalKind),
}

/// The settings of the shipped code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shipped {
    pub(crate) attempts: u32,
    /// Whether services enforce; if not, they run in mode off.
    pub(crate) owns: bool,
    pub(crate) claims: Claims,
    /// Whether the mark travels.
    pub(crate) mark: bool,
    pub(crate) budget: Option<BudgetConfig>,
    pub(crate) gate: bool,
    pub(crate) probes: bool,
    pub(crate) silent_claims: bool,
}

/// What services say with their errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claims {
    Shipped,
    /// As the published matrix has it: unclaimed whenever a call to blame failed.
    PlainMatrix,
    None,
}

impl Policy {
    /// The policy of an edge of the core.
    pub(crate) fn of_edge(&self, retried: bool, attempts: Option<u32>, waits: bool) -> EdgePolicy {
        let Kind::Shipped(shipped) = self.kind else { return EdgePolicy::default() };
        let allowed = if retried { attempts.unwrap_or(shipped.attempts) } else { 0 };
        let mut retry =
            RetryPolicy::new(allowed.min(if shipped.attempts < 2 { 0 } else { u32::MAX }));
        if let Some(retry) = &mut retry {
            retry.errors.remove(EXCLUDED);
            retry.budget = shipped.budget;
            retry.gate = shipped.gate;
            retry.probes = shipped.probes;
            if !waits {
                retry.backoff = Backoff::NONE;
            }
        }
        EdgePolicy { retry, ..EdgePolicy::default() }
    }
}

/// The error that no policy covers.
pub(crate) const EXCLUDED: CallError = CallError::Http(501);

/// A budget that remembers as long as the shipped default.
pub(crate) fn budget(percent: u32, deposit: onus_core::Deposit, floor: u32) -> BudgetConfig {
    BudgetConfig { percent, deposit, min_per_second: floor, ..BudgetConfig::ARTICLES }
}
