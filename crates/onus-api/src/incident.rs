//! What tools read of storms and incidents.

use serde::{Deserialize, Serialize};

use crate::counts::EdgeCounts;
use crate::report::EdgePolicyFacts;

/// How far and how large a retry storm may get, for each service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RadiusPage {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The services asked for; those that nobody calls, if none was named.
    pub services: Vec<Radius>,
    /// What is not in these figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The analyses that have the callers which are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// The storm below one service, over every single culprit that fails persistently.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Radius {
    /// The service.
    pub service: String,
    /// If every service retried blindly.
    pub without: Storm,
    /// As the mesh is.
    pub now: Storm,
    /// If every service enforced, and knew its edges.
    pub everywhere: Storm,
    /// What would make it smaller, best first.
    pub advice: Vec<String>,
}

/// How far and how large a storm may get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Storm {
    /// The most hops on one path that multiply requests.
    pub radius: u32,
    /// The largest product of their attempts, a maximum of its own.
    pub amplification: f64,
    /// Hops from a culprit to the farthest hop that multiplies.
    pub reach: u32,
    /// A path with this radius, from the service down to the culprit.
    pub path: Vec<String>,
    /// Services through which a circle of calls multiplies without end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbounded_through: Vec<String>,
}

/// Services and the calls between them, with what is known of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GraphPage {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The services, and how far ownership reaches in them: `enforcing`, `observing`,
    /// `context-lost` or `non-cooperative`.
    pub services: Vec<(String, String)>,
    /// The calls.
    pub edges: Vec<GraphEdge>,
    /// What is not in these figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The analyses that have the callers which are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// The calls of one service to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GraphEdge {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// The most attempts of a call, by whoever makes them.
    pub attempts: u32,
    /// `fail-close`, `fail-open` or `unknown`.
    pub class: String,
    /// Whether the caller survives by all that was measured.
    #[serde(default)]
    pub fail_open: bool,
    /// Whether agents are told so, of any procedure.
    #[serde(default)]
    pub held_fail_open: bool,
}

/// What was counted and prevented in a window of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Incident {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The first minute asked for, in milliseconds since 1970.
    pub from: u64,
    /// The end of the last one.
    pub to: u64,
    /// Minutes in which something went wrong.
    pub minutes: Vec<Minute>,
    /// Where most failures began: a callee that fails while none of its own callees does.
    pub origin: Option<String>,
    /// The edges on which something went wrong, the worst first.
    pub edges: Vec<IncidentEdge>,
    /// The roots whose requests failed.
    pub roots: Vec<IncidentRoot>,
    /// Retries that direct callers were stopped from making.
    pub direct: f64,
    /// Requests that were prevented in all of the mesh.
    pub total: Prevention,
    /// How many suppressed retries would have succeeded, by those that were made all the same.
    pub false_suppression: FalseSuppression,
    /// What is not in these figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The analyses that have the callers which are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// What was counted in a window of time, before anything is concluded: what several analyses have
/// counted can be put together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Window {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The first minute asked for, in milliseconds since 1970.
    pub from: u64,
    /// The end of the last one.
    pub to: u64,
    /// Minutes in which something went wrong.
    pub minutes: Vec<Minute>,
    /// The calls of one service to another in those minutes.
    pub pairs: Vec<WindowPair>,
    /// What is not in these figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The analyses that have the callers which are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// The calls of one service to another in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WindowPair {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// What was counted.
    pub counts: EdgeCounts,
    /// The retries that may be made, by the procedure with most of them.
    pub policy: EdgePolicyFacts,
}

/// One minute of all edges together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Minute {
    /// Its begin, in milliseconds since 1970.
    pub at: u64,
    /// Logical calls.
    pub calls: u64,
    /// Logical calls that failed.
    pub failed: u64,
    /// Retries made.
    pub retries: u64,
    /// Retries suppressed.
    pub suppressed: u64,
}

/// One pair of services in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IncidentEdge {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// What was counted.
    pub counts: EdgeCounts,
    /// Retries that the caller was stopped from making.
    pub direct: f64,
}

/// One root in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IncidentRoot {
    /// The service.
    pub service: String,
    /// The way down to the origin.
    pub path: Vec<String>,
    /// Its requests that went that way.
    pub requests: u64,
    /// Requests in the mesh that were prevented on the way.
    pub prevented: Prevention,
}

/// Requests that were prevented, by what is assumed of the failures; the truth lies between the
/// first two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Prevention {
    /// Every attempt fails by itself.
    pub independent: f64,
    /// What failed would have failed however often it was tried.
    pub persistent: f64,
    /// A part lasts, as the first two attempts tell.
    pub mixture: f64,
}

/// How many suppressed retries would have succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FalseSuppression {
    /// Retries made that were suppressed, or would have been.
    pub tried: u64,
    /// … that succeeded.
    pub succeeded: u64,
    /// The two-sided 90 % interval of the share.
    pub interval: (f64, f64),
}
