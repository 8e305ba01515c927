//! The integration tests, in one binary: linking is the slow part. All of them run real services
//! on loopback.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report, in its helpers too")]

mod conformance;
mod e2e;
mod foreign;
