//! The two HTTP APIs as OpenAPI 3.1, as they are served at `/openapi.json`.
//!
//! The documents are made from the types of this crate by its tests, and are files, so that a
//! service that reports carries no generator of schemas.

/// The API of the analysis.
pub const ANALYSIS_OPENAPI: &str = include_str!("../openapi/analysis.json");
/// The API that operators talk to in each process with Onus.
pub const AGENT_OPENAPI: &str = include_str!("../openapi/agent.json");

#[cfg(test)]
mod agent;
#[cfg(test)]
mod analysis;
#[cfg(test)]
mod document;
