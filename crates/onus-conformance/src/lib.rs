//! Conformance vectors of the error-ownership protocol, and the runner for any host.
//!
//! The vectors are YAML in `docs/conformance/`: *steps* of one service, and *trees* of services
//! with faults and the requests that each must handle. [`run_all`] puts a [`Host`] through them;
//! [`CoreHost`] acts them out over the core alone. The crate decides nothing and opens no socket;
//! the tests of every host sit above it.
//!
//! ```
//! use onus_conformance::{CoreHost, Vectors, run_all};
//!
//! run_all(&mut CoreHost, &Vectors::shipped()).assert_all_seen();
//! ```

mod core_host;
mod host;
mod literal;
mod report;
mod spelling;
pub mod step;
pub mod tree;
mod vectors;

pub use core_host::CoreHost;
pub use host::{Counts, Expected, Fact, Host, Observation, Unsupported};
pub use literal::{ErrorName, Span, TraceId};
pub use report::{Outcome, Report, run_all};
pub use step::StepVector;
pub use tree::TreeVector;
pub use vectors::{LoadError, Vectors};
