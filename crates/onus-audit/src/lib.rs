//! What retries come to in a mesh: configuration, metrics and traces that people already have,
//! joined into one graph of services.
//! It judges what it is handed and asks nobody: questions to a server of metrics are texts, and
//! their answers are given back to it. What fits nowhere is told, never dropped.
//! Above it sits onus-cli.
//!
//! [`questions`] are for [`Metrics`]; [`audit`] takes those with a
//! [`RetryConfig`](onus_retry_config::RetryConfig) and a report of traces, any of which may be
//! missing, and makes an [`Audit`].

mod audit;
mod edges;
mod metrics;
mod nodes;
mod retries;
mod storms;
mod writes;

pub use audit::{Audit, Evidence, Summary, audit};
pub use edges::{Class, EdgeFacts, Observed};
pub use metrics::{About, Metrics, Question, questions};
pub use retries::{Retries, RetriesFrom};
pub use storms::{Api, Gain, RankedEdge, Storms};
pub use writes::RepeatedWrite;
