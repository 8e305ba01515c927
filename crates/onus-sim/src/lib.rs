//! Does it hold, and what does it cost? Answers from the same decisions that production runs.
//!
//! [`model`] checks the bounds of the protocol on every small call tree, [`simulate`] shows what a
//! retry policy does to a graph of services under an outage. The crate never decides anything
//! itself and does no I/O: it drives the types of `onus-core`, with failures, time and luck as it
//! likes. `onus-cli` sits above it, and prints what it finds.

mod file_error;
pub mod model;
pub mod simulate;

pub use file_error::FileError;
