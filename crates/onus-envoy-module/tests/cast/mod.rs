//! Who plays in the tests: Envoys, the applications beside them, and a client.

mod app;
mod chain;
mod config;
mod envoy;
mod http;

pub(crate) use app::{App, CONTEXT, Plan};
pub(crate) use chain::{Chain, Setup};
pub(crate) use config::{Filters, Retries, Sidecar};
pub(crate) use envoy::{Envoy, command, missing, module_dir, plugin, scratch, until};
pub(crate) use http::{Client, Protocol, Seen};
