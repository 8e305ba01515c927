//! What tools read of edges.

use serde::{Deserialize, Serialize};

use crate::classes::{Class, Evidence};
use crate::counts::EdgeCounts;
use crate::report::EdgePolicyFacts;

/// Edges, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EdgePage {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The edges.
    pub edges: Vec<EdgeFigures>,
    /// How to ask for those that follow; `None` at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What is not in these figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The analyses that have the callers which are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// One edge, with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EdgeFigures {
    /// The service that calls.
    pub caller: String,
    /// The procedure that it serves.
    pub caller_procedure: String,
    /// The service that is called.
    pub callee: String,
    /// The procedure that is called.
    pub procedure: String,
    /// What was counted since the edge is known, by all processes of the caller.
    pub counts: EdgeCounts,
    /// What was counted in the last while, or in the window that was asked for.
    pub recent: EdgeCounts,
    /// How long that while was; of a window, the minutes that are kept.
    pub recent_seconds: f64,
    /// The retries that may be made.
    pub policy: EdgePolicyFacts,
    /// Processes of the caller that were heard of lately: each has a budget of its own.
    #[serde(default)]
    pub processes: u64,
    /// The class.
    pub class: Class,
    /// Whose word it is: `operator`, `learned` or `nobody`.
    pub by: String,
    /// What was measured.
    pub measured: String,
    /// Isolated failures that are remembered, and how many the caller shared.
    pub evidence: Evidence,
    /// k / n; `None` without evidence.
    pub ratio: Option<f64>,
    /// The two-sided 90 % interval of the ratio.
    pub interval: (f64, f64),
    /// For how long the measured class has been held.
    pub held_seconds: u64,
    /// Why the class is what it is, in words.
    pub explanation: String,
}
