//! The reference host: vectors acted out over the types of the core, without a socket, a clock or
//! a thread.

mod hop;
mod load;
mod service;
mod tree;

use crate::host::{Counts, Host, Observation, Unsupported};
use crate::step::StepVector;
use crate::tree::TreeVector;

/// Acts vectors out over the types of `onus-core`. It supports every vector and sees every fact.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreHost;

impl Host for CoreHost {
    fn name(&self) -> &str {
        "core"
    }

    fn run_steps(&mut self, vector: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        let mut service = service::Service::new(vector);
        vector.steps.iter().map(|step| service.take(step)).collect()
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        tree::Tree::new(vector).run()
    }
}
