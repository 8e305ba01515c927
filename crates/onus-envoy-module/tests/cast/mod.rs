//! Who plays in the tests: Envoys, the applications beside them, and a client.

mod app;
mod chain;
mod config;
mod envoy;
mod http;

pub(crate) use app::App;
pub(crate) use chain::Chain;
pub(crate) use config::{Filters, Retries};
pub(crate) use envoy::Envoy;
pub(crate) use http::Protocol;
