//! What Onus costs: the work that is timed for people (`cargo bench --bench times`) and counted
//! for CI (allocations in `tests/`, instructions in `benches/instructions.rs`).
//!
//! Nothing here is part of the product. Each kind of work is in one module, so that the same code
//! is timed, counted for allocations and counted for instructions.

pub mod classes;
pub mod core;
pub mod correlate;
pub mod envoy;
pub mod figures;
pub mod grpc;
pub mod layers;
pub mod storms;
pub mod traces;
