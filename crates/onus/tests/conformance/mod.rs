//! The layers as a host of the conformance vectors, in virtual time.

mod callee;
mod calls;
mod draws;
mod events;
mod load;
mod request;
mod seen;
mod service;
mod setup;
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

    fn run_steps(&mut self, vector: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        if let Some((_, why)) = OTHERWISE.iter().find(|(name, _)| *name == vector.name) {
            return Err((*why).into());
        }
        paused(service::run(vector))
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        paused(tree::run(vector))
    }
}

/// What the layers do otherwise, and why.
const OTHERWISE: [(&str, &str); 2] = [
    (
        "deposits leave with their tenth of the ttl",
        "tells a budget of its calls once a second, not at each call",
    ),
    ("the margin is a twentieth", "waits a millisecond at least, which the time left then shows"),
];

/// The vectors that need something which the layers do not have, or do not show.
const UNSUPPORTED: [&str; 12] = [
    "one declared attempt is none more",
    "a brake that acts halves the edge's share, at most every five minutes",
    "the worked example of the protocol",
    "deposits leave with their tenth of the ttl",
    "a clock that steps back stands still",
    "criteria after every ending",
    "the deadline has passed before the call",
    "the margin is a twentieth",
    "no attempt once the time has passed",
    "dropped before its first attempt",
    "lots of trace ids",
    "off, rows 2, 3, 5, 6, 7 and 9 go on",
];

#[test]
fn layers_pass_the_vectors() {
    let report = run_all(&mut Layers, &Vectors::shipped());
    report.assert_none_failed();
    assert_eq!(report.unsupported().collect::<Vec<_>>(), UNSUPPORTED, "{report}");
}
