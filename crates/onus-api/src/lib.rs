//! What crosses a process boundary: reports of agents, classes and switches handed back, and what
//! tools read.
//! It never does I/O, keeps no state and decides nothing: types with `serde`, and the arithmetic
//! of counts.
//! Above it sit the reporter in `onus`, `onus-analysis` and `onus-cli`.
//!
//! Everything is JSON with `snake_case` names. A reader ignores fields that it does not know, and
//! takes a count that is not there for zero; [`SCHEMA_VERSION`] rises only where that is not
//! enough.

mod classes;
mod counts;
mod edges;
mod incident;
mod now;
mod openapi;
mod orders;
mod problem;
mod report;

pub use classes::{Class, ClassPage, EdgeClassEntry, Evidence, SwitchOrder, Word};
pub use counts::{EdgeCounts, ProcedureCounts};
pub use edges::{EdgeFigures, EdgePage};
pub use incident::{
    FalseSuppression, GraphEdge, GraphPage, Incident, IncidentEdge, IncidentRoot, Minute,
    Prevention, Radius, RadiusPage, Storm, Window, WindowPair,
};
pub use now::{EdgeNow, ServiceNow, Snapshot};
pub use openapi::{AGENT_OPENAPI, ANALYSIS_OPENAPI};
pub use orders::{
    Audit, AuditEntry, Order, OrderRequest, Orders, Override, OverrideChange, OverrideDrop,
    OverrideRequest, OverrideSource, OverridesPlan, OverridesRequest, Range, ReplayedEdge,
    SwitchRequest,
};
pub use problem::Problem;
pub use report::{Accepted, EdgeDelta, EdgePolicyFacts, ProcedureDelta, Report, ServiceFacts};

/// The version of the wire types; each document carries it.
pub const SCHEMA_VERSION: u32 = 1;

/// What stands for a name that is hostile, too long, or one too many.
pub const OTHER: &str = "__other__";
