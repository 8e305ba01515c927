//! The filters without an Envoy: a test plays what Envoy shows them.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report, in its helpers too")]

mod cast;
mod conformance;
mod filters;
