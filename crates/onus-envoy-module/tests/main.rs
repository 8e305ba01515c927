//! The integration tests, in one binary: linking is the slow part. They run real Envoys with the
//! library in them, and are skipped by name where there is no Envoy.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report, in its helpers too")]

mod cast;
mod chains;
mod conformance;
mod files;
