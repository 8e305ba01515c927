//! Real services on loopback, counted at `GET /count`.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report, in its helpers too")]

mod demo;
mod hot_keys;
mod http;
mod topologies;
mod vectors;
mod wire;
