//! What came of runs: counts, what they mean, and how sure that is.

mod interval;
mod recovery;
mod summary;
mod tally;

pub use interval::Estimate;
pub(crate) use summary::summarize;
pub use summary::{BadKeys, Outcome, Recovery, Second, ServiceLoad, Stopped};
pub(crate) use tally::{Counted, Tally};
