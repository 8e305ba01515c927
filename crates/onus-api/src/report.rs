//! What an agent sends: what was counted since its last report.

use serde::{Deserialize, Serialize};

use crate::counts::{EdgeCounts, ProcedureCounts};

/// A report of one process: all that was counted since the one before.
///
/// A process numbers its reports from 1. One that is sent again has the same number and the same
/// content, and is ignored; a number that is left out is a report that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION) of the sender.
    pub schema_version: u32,
    /// The service that reports, `namespace/name` where namespaces exist: the caller of all edges.
    pub service: String,
    /// The process: random, new with each start.
    pub instance: String,
    /// The number of the report, from 1.
    pub sequence: u64,
    /// When it was made, by the clock of the sender, in milliseconds since 1970.
    pub at: u64,
    /// What the service is doing.
    #[serde(default)]
    pub facts: ServiceFacts,
    /// What was counted on each edge that was used.
    #[serde(default)]
    pub edges: Vec<EdgeDelta>,
    /// What was counted in each procedure that was served.
    #[serde(default)]
    pub procedures: Vec<ProcedureDelta>,
}

/// What a service is doing, as it is and not as it was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ServiceFacts {
    /// `off`, `observe` or `enforce`.
    pub mode: String,
    /// The share of request trees that claims decide, in percent.
    pub enforce_percent: u8,
    /// How much longer its shield holds; zero without one.
    pub shield_left_seconds: u64,
    /// The version of Onus in it.
    pub version: String,
    /// How many processes this tells of, where it is not one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// What was counted on one edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EdgeDelta {
    /// The procedure that was served; empty for calls that no request made.
    #[serde(default)]
    pub caller_procedure: String,
    /// The service that was called.
    pub callee: String,
    /// The procedure that was called.
    pub procedure: String,
    /// The retries that may be made on it.
    #[serde(default)]
    pub policy: EdgePolicyFacts,
    /// What was counted.
    pub counts: EdgeCounts,
}

/// The retries that may be made on an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EdgePolicyFacts {
    /// The most attempts of a call that Onus makes; 0 or 1 without retries.
    pub attempts: u32,
    /// The share of calls that the budget lets be retried, in percent; `None` without a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_percent: Option<u32>,
    /// The retries a second that the budget allows in any case.
    pub budget_min_per_second: u32,
    /// Whole retries that the budget would pay for at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_balance: Option<u64>,
    /// The attempts of a layer below, where one is declared.
    pub declared_attempts: u32,
    /// Whether a layer below was seen to retry that nobody declared.
    pub foreign_retries: bool,
    /// Whether a method that is not idempotent may be retried.
    pub unsafe_methods: bool,
    /// Nothing of this is known, as whoever counted does not tell policies.
    #[serde(skip_serializing_if = "is_false")]
    pub unknown: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// What was counted in one procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcedureDelta {
    /// The procedure.
    pub procedure: String,
    /// What was counted.
    pub counts: ProcedureCounts,
}

/// The answer to a report that is stored: it is on disk, and will be counted once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Accepted {
    /// The number of the last report that is stored.
    pub sequence: u64,
    /// Whether the report had been stored before.
    pub repeated: bool,
    /// Reports of this process that never came, from its start on.
    pub lost: u64,
}
