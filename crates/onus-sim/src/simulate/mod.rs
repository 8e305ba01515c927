//! What a retry policy does to a graph of services under an outage.
//!
//! A [`Scenario`] says who calls whom, what goes wrong and which policies are compared; [`run`]
//! plays it, event by event, with time and luck that are made up and repeat. Where a policy is one
//! of Onus, every decision is taken by the code that production runs: budget, gate, retry table,
//! criteria, claim and mark. Other people's algorithms stand beside it, each with its source.

mod charts;
mod engine;
mod exact;
mod experiment;
mod graph;
mod outcome;
mod plan;
mod policy;
mod quantity;
mod random;
mod report;
mod rivals;
mod scenario;

pub use charts::{Chart, charts};
pub use exact::{Exact, Ratio};
pub use experiment::{Experiment, RunOptions, run};
pub use outcome::{BadKeys, Estimate, Outcome, Recovery, Second, ServiceLoad, Stopped};
pub use report::{csv, json};
pub use scenario::{Changes, SHIPPED, Scenario, shipped};
