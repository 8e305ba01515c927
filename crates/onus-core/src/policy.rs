//! What the operator configured for an edge. A policy here cannot be invalid: hosts check what
//! was typed and build these.

use core::time::Duration;

use crate::backoff::Backoff;
use crate::budget::BudgetConfig;
use crate::error::{CallError, ErrorSet};

/// The retries that an operator allows on an edge; at least two attempts by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    attempts: u32,
    /// Which errors are retried; by default every error of protocol §1.
    pub errors: ErrorSet,
    /// Whether unsafe HTTP methods are retried too; never unless the operator says so.
    pub unsafe_methods: bool,
    /// The wait between attempts.
    pub backoff: Backoff,
    /// The budget for retries; `None` for no limit.
    pub budget: Option<BudgetConfig>,
    /// Whether the efficacy gate limits retries.
    pub gate: bool,
    /// The time that an attempt is assumed to need.
    pub min_attempt_time: Duration,
    /// Whether a share of the suppressed retries is made after all, to measure what suppression
    /// costs.
    pub probes: bool,
}

/// The time that an attempt is assumed to need unless the operator says otherwise.
pub const MIN_ATTEMPT_TIME: Duration = Duration::from_millis(10);

impl RetryPolicy {
    /// The attempts of the preset `recommended`: the third wins back what ownership gives away
    /// where errors are independent.
    pub const RECOMMENDED_ATTEMPTS: u32 = 3;

    /// A policy of `attempts` attempts with the defaults of the protocol, which but for the
    /// attempts are those of the preset `recommended`; `None` for fewer than two, which is no
    /// policy.
    #[must_use]
    pub fn new(attempts: u32) -> Option<Self> {
        (attempts >= 2).then(|| Self {
            attempts,
            errors: ErrorSet::failures(),
            unsafe_methods: false,
            backoff: Backoff::default(),
            budget: Some(BudgetConfig::default()),
            gate: true,
            min_attempt_time: MIN_ATTEMPT_TIME,
            probes: true,
        })
    }

    /// The preset `articles`, as it was published: a budget of 10 % of the requests, and no gate.
    #[must_use]
    pub fn articles(attempts: u32) -> Option<Self> {
        let budget = Some(BudgetConfig::ARTICLES);
        Self::new(attempts).map(|policy| Self { budget, gate: false, ..policy })
    }

    /// The most attempts of a logical call.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether the policy retries `error` on a request of this method.
    #[must_use]
    pub fn covers(&self, method: MethodKind, error: CallError) -> bool {
        self.allows(method) && self.errors.contains(error)
    }

    /// Whether the policy retries requests of this method at all.
    #[must_use]
    pub const fn allows(&self, method: MethodKind) -> bool {
        match method {
            MethodKind::Safe | MethodKind::Grpc => true,
            MethodKind::Unsafe => self.unsafe_methods,
        }
    }
}

/// What a request's method says about sending it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// GET, HEAD, OPTIONS, TRACE.
    Safe,
    /// Any other HTTP method.
    Unsafe,
    /// A gRPC method: a policy that names the callee has said that it may be retried.
    Grpc,
}

/// Retries that a layer below Onus is declared to make on an edge (Envoy, a gRPC library).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeclaredRetries {
    /// The attempts it makes on an error it retries.
    pub attempts: u32,
    /// The errors it retries.
    pub errors: ErrorSet,
}

/// All that was configured for an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdgePolicy {
    /// The retries that Onus makes; none unless configured.
    pub retry: Option<RetryPolicy>,
    /// The retries of a layer below. Together with [`Self::retry`] the two are stacked, and the
    /// policy counts its own sends only.
    pub declared: Option<DeclaredRetries>,
    /// Which answers are failures of the callee.
    pub failures: ErrorSet,
    /// Whether the callee is inside the trust boundary; the claims of others are not read.
    pub trusted: bool,
    /// Whether the brake halves the edge's enforce share, and does not only tell.
    pub brake_acts: bool,
}

impl Default for EdgePolicy {
    /// No retries by anyone, the failures of protocol §1, trusted, a brake that only tells.
    fn default() -> Self {
        Self {
            retry: None,
            declared: None,
            failures: ErrorSet::failures(),
            trusted: true,
            brake_acts: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_two_attempts_are_no_policy() {
        // [decide-5]
        for (attempts, is_policy) in [(0, false), (1, false), (2, true), (u32::MAX, true)] {
            let policy = RetryPolicy::new(attempts);
            assert_eq!(policy.is_some(), is_policy, "{attempts}");
            assert!(policy.is_none_or(|policy| policy.attempts() == attempts));
        }
    }

    #[test]
    fn defaults_are_those_of_the_protocol() {
        // [decide-9] [decide-13] [decide-16] [probe-5]
        let policy = RetryPolicy::new(3).unwrap();
        assert_eq!(policy.errors, ErrorSet::failures());
        assert_eq!(policy.min_attempt_time, Duration::from_millis(10));
        assert_eq!(policy.backoff, Backoff::default());
        assert_eq!(policy.budget, Some(BudgetConfig::default()));
        assert!(policy.probes && policy.gate && !policy.unsafe_methods);
        let articles = RetryPolicy::articles(3).unwrap();
        let expected = RetryPolicy { budget: Some(BudgetConfig::ARTICLES), gate: false, ..policy };
        assert_eq!(articles, expected);
        assert_eq!(RetryPolicy::articles(1), None);
    }

    #[test]
    fn methods_and_errors_that_a_policy_covers() {
        // [decide-5] [decide-16]
        let plain = RetryPolicy::new(2).unwrap();
        let mut picky = RetryPolicy { unsafe_methods: true, ..plain };
        picky.errors = [CallError::Http(418)].into_iter().collect();
        let unavailable = CallError::Http(503);
        for (policy, method, error, covers) in [
            (plain, MethodKind::Safe, unavailable, true),
            (plain, MethodKind::Unsafe, unavailable, false),
            (plain, MethodKind::Grpc, CallError::Grpc(14), true),
            (plain, MethodKind::Safe, CallError::Http(404), false),
            (picky, MethodKind::Unsafe, CallError::Http(418), true),
            (picky, MethodKind::Safe, unavailable, false),
        ] {
            assert_eq!(policy.covers(method, error), covers, "{method:?} {error:?}");
        }
    }

    #[test]
    fn an_edge_without_configuration_retries_nothing_and_trusts() {
        let edge = EdgePolicy::default();
        assert_eq!((edge.retry, edge.declared), (None, None));
        assert!(edge.trusted && !edge.brake_acts);
        assert_eq!(edge.failures, ErrorSet::failures());
    }
}
