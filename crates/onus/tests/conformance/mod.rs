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
mod wire;

use onus_conformance::{
    Counts, Host, Observation, StepVector, TreeVector, Unsupported, Vectors, run_all,
};

use crate::cast::paused;

use self::wire::Wire;

/// The layers around handlers and clients of this process.
struct Layers(Wire);

impl Host for Layers {
    fn name(&self) -> &str {
        match self.0 {
            Wire::Http => "layers",
            Wire::OneBlock => "layers, gRPC in one block",
            Wire::Trailers => "layers, gRPC with trailers",
        }
    }

    fn run_steps(&mut self, vector: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        if let Some((_, why)) = OTHERWISE.iter().find(|(name, _)| *name == vector.name) {
            return Err((*why).into());
        }
        if let Some(why) = self.0.differs(vector) {
            return Err(why.into());
        }
        paused(service::run(vector, self.0))
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        match self.0 {
            Wire::Http => paused(tree::run(vector)),
            Wire::OneBlock | Wire::Trailers => Err("is acted out by services on sockets".into()),
        }
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

/// What does not come up over gRPC beside those: see [`Wire::differs`].
const NOT_GRPC: [&str; 6] = [
    "declared attempts are assumed for the listed errors only",
    "an answer whose body breaks has failed after all",
    "errors of the protocol",
    "row 3, the policy excludes the error",
    "row 3, a policy without a list covers every error",
    "row 3, unsafe methods are retried only if the policy says so",
];

#[test]
fn layers_pass_the_vectors() {
    let report = run_all(&mut Layers(Wire::Http), &Vectors::shipped());
    report.assert_none_failed();
    assert_eq!(report.unsupported().collect::<Vec<_>>(), UNSUPPORTED, "{report}");
}

#[test]
fn layers_pass_the_steps_over_grpc() {
    let vectors = Vectors::shipped();
    let is_step = |name: &&str| vectors.steps.iter().any(|vector| vector.name == *name);
    for wire in [Wire::OneBlock, Wire::Trailers] {
        let report = run_all(&mut Layers(wire), &vectors);
        report.assert_none_failed();
        let unsupported: Vec<_> = report.unsupported().filter(is_step).collect();
        let expected = vectors.steps.iter().map(|vector| vector.name.as_str());
        let expected =
            expected.filter(|name| UNSUPPORTED.contains(name) || NOT_GRPC.contains(name));
        assert_eq!(unsupported, expected.collect::<Vec<_>>(), "{report}");
    }
}
