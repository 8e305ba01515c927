//! Retry configuration as people write it, in one binary: linking is the slow part.

mod dialects;
mod hostile;
mod shared;

use onus_retry_config::{Caller, Import, Policy, RetryConfig};

fn read(text: &str) -> RetryConfig {
    let mut import = Import::default();
    import.read("a.yaml", text);
    import.finish()
}

/// A policy in one line.
fn line(policy: &Policy) -> String {
    let caller = match &policy.caller {
        Caller::Anyone => "anyone".to_owned(),
        Caller::Gateway => "gateways".to_owned(),
        Caller::Service(service) => service.to_string(),
    };
    let on: Vec<_> = policy.conditions.iter().map(ToString::to_string).collect();
    let mut line = format!(
        "{} -> {} {}{:?}: {} on {}",
        caller,
        policy.callee,
        policy.route.label,
        policy.route.methods,
        policy.attempts,
        on.join(",")
    );
    if let Some(time) = policy.per_try_timeout {
        line.push_str(&format!("; {time:?} a try"));
    }
    if let Some(time) = policy.timeout {
        line.push_str(&format!("; {time:?} in all"));
    }
    if let Some(budget) = policy.budget {
        line.push_str(&format!("; {budget}"));
    }
    if policy.by_default {
        line.push_str("; by default");
    }
    line
}

/// Compares policies and what could not be read with what is expected.
#[track_caller]
fn check(config: &RetryConfig, policies: &[&str], unread: &[&str]) {
    let lines: Vec<_> = config.policies.iter().map(line).collect();
    assert_eq!(lines, policies, "policies");
    let told: Vec<_> = config.unread.iter().map(ToString::to_string).collect();
    assert_eq!(told, unread, "unread");
}
