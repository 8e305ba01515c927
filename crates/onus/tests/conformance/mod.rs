//! The layers as a host of the conformance vectors, in virtual time.

mod tree;

use onus_conformance::{
    Counts, Host, Observation, StepVector, TreeVector, Unsupported, Vectors, run_all,
};

use crate::cast::paused;

/// The layers around handlers and clients of this process.
struct Layers;

impl Host for Layers {
    fn name(&self) -> &str {
        "layers"
    }

    fn run_steps(&mut self, _: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        Err("not yet".into())
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        paused(tree::run(vector))
    }
}

#[test]
fn layers_pass_the_vectors() {
    let report = run_all(&mut Layers, &Vectors::shipped());
    report.assert_none_failed();
    println!("{report}");
}
