//! The sidecar: error ownership for services in any language.
//!
//! It runs beside an application and hosts the layers of crate `onus`: requests come through its
//! inbound listener to the application, calls of the application go through its outbound listeners
//! to their callees. It adds listeners, a pool of connections, drain and an admin interface; it
//! takes no decision about retries or claims. The command `onus proxy` sits above it.

mod activity;
mod admin;
mod answer;
mod beside;
mod busy;
mod client_error;
pub mod config;
mod connection;
mod flood;
mod forwarding;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod hop;
mod hosts;
mod inbound;
mod interim;
mod listener;
mod max_forwards;
mod metrics;
mod outbound;
mod passing;
mod pool;
mod proxy;
mod request;
mod routes;
mod run;
mod stream;
mod tail;
mod tls;
mod tunnel;

pub use crate::config::{
    BudgetFile, ConfigFile, DeclaredFile, Errors, Like, MadeBy, Overrides, ProxyConfig,
    ProxyConfigError, RetryFile, Span,
};
pub use crate::proxy::{Proxy, StartError};
pub use crate::run::{RunError, run};
pub use crate::tls::TlsError;
