//! The dependency analysis: takes in what agents count, remembers it, and hands back the classes of
//! edges, what operators order, and figures for people.
//! It never decides about a call, is never on the way of one, and may be away at any time: agents
//! keep their counts and the last classes.
//! Above it sits onus-cli, whose `onus analysis` runs it.
//!
//! A report is answered when it is on disk, and counted once however often it comes. The state in
//! memory is a fold over reports: `book` is that fold, `store` keeps a checkpoint of it and the
//! reports since, and `engine` is the one thread that writes both.

mod access;
mod book;
mod classes;
mod clock;
mod codec;
mod config;
mod date;
mod edges;
mod engine;
mod file;
mod gaps;
mod graph;
mod http;
mod incident;
mod last;
mod meant;
mod metrics;
mod names;
mod now;
mod orders;
mod overrides;
mod overrides_file;
mod promql;
mod replay;
mod shard;
mod store;
mod tls;
mod typed;
mod window;

pub use access::{Grant, Proof, Role};
pub use config::{AnalysisConfig, Limits, PromqlConfig};
pub use engine::Analysis;
pub use file::{AnalysisFile, ConfigError};
pub use graph::radius;
pub use http::{ServeError, Server};
pub use incident::incident;
pub use overrides_file::read_overrides;
pub use promql::{SERIES, Series, Takes};
pub use shard::Shard;
pub use store::StoreError;
pub use tls::{TlsError, TlsFiles};
pub use typed::duration;
