//! Error ownership as filters of Envoy: what the filters of a listener report to `onus-agent`, and
//! what they do of what it answers.
//!
//! Envoy keeps its retry policies and makes every retry; the filters count its attempts, write
//! claims, and put vetoes on errors that nobody should retry. Nothing here decides, and nothing
//! here knows how Envoy is called: that is behind the trait [`Stream`]. `onus-envoy-module` (a
//! dynamic module) and `onus-envoy-wasm` sit above and implement it.

mod attempt;
mod block;
mod callee;
mod calling;
mod calls;
mod config;
mod hub;
mod inbound;
mod log_text;
mod outbound;
mod records;
mod response_flags;
mod stats;
mod stream;
mod texts;

pub use onus_agent::{Agent, SwitchLook, Timestamp};

pub use attempt::{AttemptFilter, Head};
pub use config::{CalleeConfig, ConfigError, Direction, FilterConfig, RetryConfig};
pub use hub::{Hub, Service};
pub use inbound::InboundFilter;
pub use log_text::log_text;
pub use outbound::OutboundFilter;
pub use stats::{Counters, FAMILIES, Family};
pub use stream::{Block, Clock, Shared, Stream};
