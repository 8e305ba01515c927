//! What every Onus host shares in one process: edges, budgets, classes, counters, the correlation
//! of outbound with inbound calls, modes, and the text of claims.
//!
//! Tower layers, the proxy and Envoy filters report the same moments to an [`Agent`] and do what
//! it answers. The agent takes no decision of its own, those are `onus-core`'s; it never does I/O,
//! never waits, and takes the time as an argument. All it remembers is bounded.

mod agent;
mod call_facts;
pub mod classify;
mod config;
pub mod correlator;
mod counters;
mod drain;
mod edges;
mod events;
mod given;
mod guard;
mod inbound;
mod learning;
mod metrics;
mod outbound;
mod policy;
mod procedures;
mod rules;
mod switch;
mod switch_look;
pub mod symbols;
mod totals;
pub mod trace_context;
mod view;
pub mod wire;

pub use onus_core::{
    Arm, CallError, CalleeClaim, Claim, ClaimReason, Draw, EdgeClass, EdgePolicy, ErrorSet,
    MethodKind, Mode, Pushback, Retry, RetryCause, Share, Stop, Timestamp, Verdict,
};
pub use onus_learn::Annotation;

pub use crate::agent::Agent;
pub use crate::call_facts::{CallOutcome, CallStart, FailedAttempt};
pub use crate::config::{AgentConfig, ConfigError, Limits};
pub use crate::edges::Edge;
pub use crate::given::GivenClass;
#[cfg(feature = "fault-injection")]
pub use crate::guard::fault_injection;
pub use crate::inbound::{Inbound, Origin, Placed, Relay};
pub use crate::outbound::Outbound;
pub use crate::policy::{PolicyError, RetryPolicy, Timeouts};
pub use crate::switch::{Source, SwitchError, SwitchFile, Switches, parse_mode};
pub use crate::switch_look::SwitchLook;
pub use crate::symbols::{Procedure, Symbol, Symbols};
pub use crate::totals::{EdgeName, EdgeTotals, ProcedureTotals, RetryTotals};
pub use crate::view::EdgeView;
