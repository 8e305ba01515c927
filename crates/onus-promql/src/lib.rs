//! Questions to a server that speaks PromQL: Prometheus, Thanos, Mimir, VictoriaMetrics.
//! It asks for the value of an expression at one moment and never writes; an answer has a limit of
//! time and of size. What the numbers mean is not its business.
//! Above it sit onus-analysis, onus-audit and onus-cli.

mod answer;
mod client;
mod endpoint;
mod tls;

pub use answer::{Answer, Sample};
pub use client::{AskError, Client, InvalidToken, Limits};
pub use endpoint::{Endpoint, EndpointError};
pub use tls::AuthoritiesError;
