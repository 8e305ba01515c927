//! What is said about a callee, to the builder of crate `onus`.

use std::time::Duration;

use onus::{CallError, EdgeClass, ErrorSet, OnusBuilder, RetryPolicy};

use super::ProxyConfigError;
use super::file::{
    AnnotationWord, BudgetFile, CalleeFile, ClassWord, DeclaredFile, Like, MadeBy, RetryFile,
};
use super::words::Span;

/// Says to the builder what the file says about a callee.
pub(super) fn configure(
    mut builder: OnusBuilder,
    name: &str,
    callee: &CalleeFile,
) -> Result<OnusBuilder, ProxyConfigError> {
    if let Some(retry) = &callee.retry {
        builder = builder.retry(name, policy(retry, &format!("callees.{name}.retry"))?);
    }
    for (procedure, retry) in &callee.procedures {
        let field = format!("callees.{name}.procedures.{procedure}");
        builder = builder.retry_procedure(name, procedure, policy(retry, &field)?);
    }
    if let Some(retries) = &callee.retries {
        let (attempts, errors) = declared(retries, &format!("callees.{name}.retries"))?;
        builder = builder.declared_retries(name, attempts, errors);
    }
    if let Some(failures) = callee.failures {
        builder = builder.failures(name, failures.0);
    }
    builder = match callee.annotation {
        Some(AnnotationWord::Required) => builder.required(name),
        Some(AnnotationWord::Optional) => builder.optional(name),
        None => builder,
    };
    if let Some(class) = callee.override_class {
        builder = builder.override_class(
            name,
            match class {
                ClassWord::FailClose => EdgeClass::FailClose,
                ClassWord::FailOpen => EdgeClass::FailOpen,
                ClassWord::Unknown => EdgeClass::Unknown,
            },
        );
    }
    if callee.untrusted {
        builder = builder.untrusted(name);
    }
    if callee.brake_acts {
        builder = builder.brake_acts(name);
    }
    Ok(builder)
}

fn policy(retry: &RetryFile, field: &str) -> Result<RetryPolicy, ProxyConfigError> {
    let mut policy = RetryPolicy::attempts(retry.attempts);
    match (&retry.budget, retry.no_budget) {
        (Some(_), true) => {
            return Err(ProxyConfigError::Value {
                field: format!("{field}.no-budget"),
                value: "true".to_owned(),
                allowed: "one of budget and no-budget",
            });
        }
        (None, true) => policy = policy.no_budget(),
        (Some(budget), false) => policy = with_budget(policy, budget),
        (None, false) => {}
    }
    if let Some(errors) = retry.errors {
        policy = policy.errors(errors.0);
    }
    if retry.unsafe_methods {
        policy = policy.unsafe_methods();
    }
    if retry.backoff_base.is_some() || retry.backoff_max.is_some() {
        let or = |span: Option<Span>, default| span.map_or(default, |span| span.0);
        let base = or(retry.backoff_base, Duration::from_millis(25));
        let max = or(retry.backoff_max, Duration::from_millis(250).max(base));
        policy = policy.backoff(base, max);
    }
    if retry.no_gate {
        policy = policy.no_gate();
    }
    if retry.no_probes {
        policy = policy.no_probes();
    }
    if let Some(time) = retry.min_attempt_time {
        policy = policy.min_attempt_time(time.0);
    }
    if let Some(timeout) = retry.per_try_timeout {
        policy = policy.per_try_timeout(timeout.0);
    }
    if let Some(deadline) = retry.deadline {
        policy = policy.deadline(deadline.0);
    }
    if retry.stacked {
        policy = policy.stacked();
    }
    Ok(policy)
}

fn with_budget(mut policy: RetryPolicy, budget: &BudgetFile) -> RetryPolicy {
    if let Some(percent) = budget.percent {
        policy = policy.budget_percent(percent);
    }
    if budget.from_calls {
        policy = policy.budget_from_calls();
    }
    if let Some(floor) = budget.min_per_second {
        policy = policy.budget_min_per_second(floor);
    }
    if let Some(ttl) = budget.ttl {
        policy = policy.budget_ttl(ttl.0);
    }
    policy
}

fn declared(retries: &DeclaredFile, field: &str) -> Result<(u32, ErrorSet), ProxyConfigError> {
    let known = match (retries.made_by, retries.like) {
        (MadeBy::Below, Some(Like::IstioDefault)) => Some((3, istio_default())),
        (MadeBy::Below, None) => None,
    };
    let attempts = retries.attempts.or_else(|| known.map(|(attempts, _)| attempts));
    let Some(attempts) = attempts else {
        return Err(ProxyConfigError::Value {
            field: format!("{field}.attempts"),
            value: String::new(),
            allowed: "2 to 100, or a known layer as `like`",
        });
    };
    let errors = retries.errors.map(|errors| errors.0).or_else(|| known.map(|(_, errors)| errors));
    Ok((attempts, errors.unwrap_or(ErrorSet::FAILURES)))
}

/// `connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes` with 503.
fn istio_default() -> ErrorSet {
    [
        CallError::Connect,
        CallError::Reset,
        CallError::Http(503),
        CallError::Grpc(14),
        CallError::Grpc(1),
    ]
    .into_iter()
    .collect()
}
