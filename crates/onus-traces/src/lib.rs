//! Edges, classes, claims and depth from dumps of distributed traces that people already have.
//! It reads what is handed to it and never a network or a clock; no input makes it fail, take
//! unbounded memory or drop anything without saying so.
//! Above it sits onus-cli.
//!
//! [`Import`] takes files one after the other in any [`Format`], compressed or not, and keeps 64
//! bytes of each span. The [`Report`] counts them: an [`Edge`] for each pair of services with P =
//! P(caller failed | callee failed) and its class, [`Claims`] for each service, [`Depths`] and
//! [`Warning`]s with file and position.

mod analysis;
mod collect;
mod formats;
mod id;
mod import;
mod json;
mod list;
mod names;
mod records;
mod report;
mod source;
mod span;
mod trouble;
mod window;
mod wire;

pub use analysis::{Amplification, Claims, Depths, Edge, HISTOGRAM_MAX, Histogram, Reading};
pub use collect::Limits;
pub use formats::{Columns, Format, Service};
pub use import::Import;
pub use json::Why;
pub use report::{Report, Summary};
pub use trouble::{Skipped, Trouble, Warning};
