//! Services on sockets as a host of the conformance vectors, in every protocol that they talk.

mod sidecars;
mod topology;

use std::time::Duration;

use onus_conformance::tree::{RetriesBy, TreeAnswer, TreeVector};
use onus_conformance::{
    Counts, Host, Observation, Outcome, Report, StepVector, Unsupported, Vectors, run_all,
};
use onus_demo::{Cluster, Load, Protocol};
use tokio::runtime;
use tokio::time::timeout;

use self::sidecars::Proxies;

/// Services of the demo, each behind its own port.
struct Sockets {
    wire: Wire,
    hosting: Hosting,
    runtime: runtime::Runtime,
}

/// Where the layers are.
#[derive(Clone, Copy)]
enum Hosting {
    /// In the services.
    Within,
    /// In a sidecar beside each.
    Beside,
}

/// How the services talk.
#[derive(Clone, Copy)]
struct Wire {
    name: &'static str,
    protocol: Protocol,
    /// Whether heads are sent before errors are known.
    head_first: bool,
}

const HTTP1: Wire = Wire { name: "HTTP/1.1", protocol: Protocol::Http1, head_first: false };
const HTTP2: Wire = Wire { name: "HTTP/2", protocol: Protocol::Http2, head_first: false };
const GRPC: Wire = Wire { name: "gRPC, one block", protocol: Protocol::Grpc, head_first: false };
const TRAILERS: Wire = Wire { name: "gRPC, trailers", protocol: Protocol::Grpc, head_first: true };

impl Wire {
    /// Why a vector does not come out in this protocol as it says.
    fn differs(self, vector: &TreeVector) -> Option<&'static str> {
        let mut nodes = vector.nodes.values();
        if self.protocol == Protocol::Grpc && vector.name == OFF {
            return Some("a caller that is off obeys the gRPC veto of its enforcing callee");
        }
        if self.head_first && nodes.any(|node| node.retries != RetriesBy::Onus) {
            return Some("a retry layer, as in gRPC libraries, is done once a head is there");
        }
        None
    }
}

impl Host for Sockets {
    fn name(&self) -> &str {
        self.wire.name
    }

    fn run_steps(&mut self, _: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        Err("the clock and the random numbers of a running service are its own".into())
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        let wire = self.wire;
        if let Some(why) = wire.differs(vector) {
            return Err(why.into());
        }
        let hosting = self.hosting;
        let run =
            self.runtime.block_on(async { timeout(TOO_LONG, run(vector, wire, hosting)).await });
        run.unwrap_or_else(|_| panic!("{:?} comes to no end", vector.name))
    }
}

async fn run(vector: &TreeVector, wire: Wire, hosting: Hosting) -> Result<Counts, Unsupported> {
    let topology = topology::of(vector, wire)?;
    let mut sidecars = Proxies::default();
    let cluster = match hosting {
        Hosting::Within => Cluster::start(&topology).await.unwrap(),
        Hosting::Beside => Cluster::start_beside(&topology, &mut sidecars).await.unwrap(),
    };
    cluster.send(Load::new((vector.runs - 1).into(), 1)).await.unwrap();
    let last = cluster.send(Load::new(1, 1)).await.unwrap();
    let answer = Some(match last.most_seen() {
        None => TreeAnswer::Ok,
        Some((error, _)) => TreeAnswer::Error(error.read),
    });
    let names = cluster.addresses().iter().map(|(name, _)| name.clone());
    let requests = names.zip(cluster.counts().await.unwrap()).collect();
    Ok(Counts { requests, answer })
}

/// Runs all vectors; those of trees must pass, but for these.
fn check(wire: Wire, hosting: Hosting, unsupported: &[&str]) -> Report {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let vectors = Vectors::shipped();
    let report = run_all(&mut Sockets { wire, hosting, runtime }, &vectors);
    report.assert_none_failed();
    let trees: Vec<_> = report.unsupported().skip(vectors.steps.len()).collect();
    assert_eq!(trees, unsupported, "beside all steps");
    let all_seen = Outcome::Passed { unseen: Vec::new() };
    let passed = report.outcomes.iter().filter(|(_, outcome)| *outcome == all_seen);
    assert_eq!(passed.count(), vectors.trees.len() - unsupported.len(), "{report}");
    report
}

#[test]
fn trees_pass_over_http1() {
    println!("{}", check(HTTP1, Hosting::Within, &[]));
}

#[test]
fn trees_pass_over_http2() {
    println!("{}", check(HTTP2, Hosting::Within, &[]));
}

#[test]
fn trees_pass_over_grpc() {
    println!("{}", check(GRPC, Hosting::Within, &[OFF]));
}

#[test]
fn trees_pass_over_grpc_with_errors_in_trailers() {
    println!("{}", check(TRAILERS, Hosting::Within, &BEHIND_A_HEAD));
}

#[test]
fn trees_pass_through_sidecars_over_http1() {
    println!("{}", check(HTTP1, Hosting::Beside, &[]));
}

#[test]
fn trees_pass_through_sidecars_over_http2() {
    println!("{}", check(HTTP2, Hosting::Beside, &[]));
}

#[test]
fn trees_pass_through_sidecars_over_grpc() {
    println!("{}", check(GRPC, Hosting::Beside, &[OFF]));
}

#[test]
fn trees_pass_through_sidecars_over_grpc_with_errors_in_trailers() {
    println!("{}", check(TRAILERS, Hosting::Beside, &BEHIND_A_HEAD));
}

/// The count that gRPC changes: see `a_caller_that_is_off_obeys_the_veto_of_grpc`.
const OFF: &str = "a service that is off neither reads nor sends";

/// That one, and all in which somebody below Onus retries.
const BEHIND_A_HEAD: [&str; 15] = [
    "the last node and its caller send no claim",
    "the root and the last node are without Onus, A blind",
    "the root and the last node are without Onus, A obeys vetoes",
    "B and D are without Onus, B blind",
    "B and D are without Onus, B obeys vetoes",
    "N without Onus in the middle retries blindly",
    "N without Onus in the middle obeys vetoes",
    "retries by a layer below that obeys vetoes",
    "three attempts by a layer below that obeys vetoes",
    "retries by a layer below that ignores vetoes",
    "three attempts by a layer below that ignores vetoes",
    "a layer below retries a callee that names no attempt",
    "an observing service sends no vetoes",
    OFF,
    "shield on D, the others without Onus but obedient",
];

/// A tree takes seconds where it is long or somebody waits in it.
const TOO_LONG: Duration = Duration::from_secs(180);
