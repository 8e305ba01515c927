//! Calls that may have been processed, are retried, and are not idempotent.

use onus_retry_config::{Place, Policy};

/// A route on which they are.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedWrite {
    /// Where it is written.
    pub place: Place,
    /// Who is called.
    pub callee: String,
    /// The route.
    pub route: String,
    /// The methods.
    pub methods: Vec<String>,
    /// What is retried.
    pub conditions: Vec<String>,
    /// The attempts, as people read them.
    pub attempts: String,
}

/// The routes of the configuration, those that nobody wrote down left to the mesh's default.
pub(crate) fn repeated(policies: &[Policy]) -> Vec<RepeatedWrite> {
    policies
        .iter()
        .filter(|policy| !policy.by_default)
        .map(|policy| (policy, policy.repeated_writes()))
        .filter(|(_, methods)| !methods.is_empty())
        .map(|(policy, methods)| RepeatedWrite {
            place: policy.place.clone(),
            callee: policy.callee.to_string(),
            route: policy.route.label.clone(),
            methods,
            conditions: policy.conditions.iter().map(ToString::to_string).collect(),
            attempts: policy.attempts.to_string(),
        })
        .collect()
}
