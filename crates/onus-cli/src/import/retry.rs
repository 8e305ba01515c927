//! A policy of others as one of the sidecar, within what it allows.

use std::time::Duration;

use onus_proxy::{BudgetFile, Errors, RetryFile, Span};
use onus_retry_config::{Attempts, Budget, BudgetBasis, Floor, Policy};

use super::errors;
use crate::cli::MadeBy;

/// The policy of the sidecar, and what of the other is not in it.
pub(super) fn of(policy: &Policy) -> (RetryFile, Vec<String>) {
    let mut lost = Vec::new();
    let attempts = match policy.attempts {
        Attempts::AtMost(most @ 0..=ATTEMPTS) => most.max(1),
        Attempts::AtMost(most) => {
            lost.push(format!("{most} attempts; the sidecar makes at most {ATTEMPTS}"));
            ATTEMPTS
        }
        Attempts::WhileBudgetPays => {
            lost.push(format!("attempts without a limit; the sidecar makes at most {ATTEMPTS}"));
            ATTEMPTS
        }
    };
    let (errors, unknown) = errors::of(&policy.conditions, MadeBy::Onus);
    lost.extend(unknown);
    let within = |time: Option<Duration>, max: Duration| {
        time.map(|time| time.clamp(Duration::from_millis(1), max))
    };
    let deadline = within(policy.timeout, TIMEOUT);
    let per_try = within(policy.per_try_timeout, deadline.unwrap_or(TIMEOUT));
    let base = policy.backoff.map(|backoff| backoff.base.min(BACKOFF));
    // Envoy's longest wait is ten times the first, and gRPC always says it.
    let max = policy.backoff.zip(base).map(|(backoff, base)| {
        backoff.max.unwrap_or_else(|| base.saturating_mul(10)).clamp(base, BACKOFF)
    });
    if policy.backoff.is_some_and(|backoff| backoff.base > BACKOFF) {
        lost.push(format!("a wait of more than {} s before a retry", BACKOFF.as_secs()));
    }
    let retry = RetryFile {
        attempts,
        budget: policy.budget.map(|given| budget(given, &mut lost)),
        no_budget: false,
        errors: errors.map(Errors),
        unsafe_methods: false,
        backoff_base: base.map(Span),
        backoff_max: max.map(Span),
        no_gate: false,
        no_probes: false,
        min_attempt_time: None,
        per_try_timeout: per_try.map(Span),
        deadline: deadline.map(Span),
        stacked: false,
    };
    (retry, lost)
}

/// The nearest budget: a share of calls, and retries a second.
fn budget(given: Budget, lost: &mut Vec<String>) -> BudgetFile {
    let percent = given.percent.ceil().min(100.0);
    if percent != given.percent {
        lost.push(format!("a budget of {} %; taken for {percent} %", given.percent));
    }
    let ttl = match given.basis {
        BudgetBasis::Interval(time) => {
            let seconds = time.as_secs_f64().ceil().clamp(1.0, 600.0) as u64;
            Some(Duration::from_secs(seconds))
        }
        BudgetBasis::InFlight => {
            lost.push("a budget of the requests in flight; taken for one of the calls".to_owned());
            None
        }
        BudgetBasis::Successes => None,
    };
    let min_per_second = match given.floor {
        Some(Floor::PerSecond(retries)) => Some(retries.ceil().min(1000.0) as u32),
        Some(Floor::AtOnce(retries)) => {
            lost.push(format!("{retries} retries at once whatever the traffic; one a second is"));
            None
        }
        None => Some(0),
    };
    BudgetFile {
        percent: Some(percent as u32),
        from_calls: given.basis != BudgetBasis::Successes,
        min_per_second,
        ttl: ttl.map(Span),
    }
}

/// What `onus config validate` lets through.
const ATTEMPTS: u32 = 10;
const BACKOFF: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);
