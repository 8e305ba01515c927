//! The trees of the conformance vectors through a real Envoy: one process, in which every service
//! has its own two listeners.

mod app;
mod config;
mod cutter;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use onus_agent::wire::ClaimHeaders;
use onus_conformance::step::ModeName;
use onus_conformance::tree::{RetriesBy, TreeAnswer};
use onus_conformance::{
    Counts, Host, Observation, StepVector, TreeVector, Unsupported, Vectors, run_all,
};
use tokio::runtime::Runtime;

use self::app::Applications;
use crate::cast::{Client, Envoy, Protocol, scratch};

/// The services of all trees, beside one Envoy.
struct RealEnvoy {
    runtime: Runtime,
    /// Whether it does not tell filters of its attempts.
    is_old: bool,
    envoy: Envoy,
    applications: Arc<Applications>,
}

impl Host for RealEnvoy {
    fn name(&self) -> &str {
        "Envoy with the module"
    }

    fn run_steps(&mut self, _: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        Err("has a clock and randomness of its own; the filters alone pass the steps".into())
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        if let Some(why) = not_expressible(vector) {
            return Err(why.into());
        }
        if self.is_old && vector.name == TOLD_BY_ENVOY {
            return Err("does not tell of its attempts".into());
        }
        Ok(self.runtime.block_on(self.run(vector)))
    }
}

impl RealEnvoy {
    async fn run(&self, vector: &TreeVector) -> Counts {
        let client = Client::new(Protocol::Http1);
        let root = config::node(vector, vector.root().unwrap());
        let mut headers = HeaderMap::new();
        headers.insert(config::CALLEE, HeaderValue::from_str(&root).unwrap());
        let mut answer = None;
        for _ in 0..vector.runs {
            let seen = client.send(self.envoy.port("clients"), &headers).await.unwrap();
            answer = Some(if seen.failed() {
                TreeAnswer::Error(ClaimHeaders::default().read(&seen.headers).callee_claim())
            } else {
                TreeAnswer::Ok
            });
        }
        let handled = |name: &&str| self.applications.handled(&config::node(vector, name));
        let requests: BTreeMap<_, _> =
            vector.calls().keys().map(|name| ((*name).to_owned(), handled(name))).collect();
        Counts { requests, answer }
    }
}

/// Trees in which an application hangs up before its Envoy has made all attempts; these wait.
const HANGS_UP: &[&str] = &[
    "a handler gives a silent call up before it is retried",
    "a handler that drops and tries again is counted",
];

/// The tree whose callees do not tell of attempts: a sidecar that must know them from its Envoy.
const TOLD_BY_ENVOY: &str = "a layer below retries a callee that names no attempt";

/// What Envoy cannot be made to do, or does otherwise.
fn not_expressible(vector: &TreeVector) -> Option<&'static str> {
    const RUNS_MAX: u32 = 100;
    if HANGS_UP.contains(&vector.name.as_str()) {
        return Some("stands beside applications that wait");
    }
    let names = vector.calls();
    let edges = || names.iter().flat_map(|(from, to)| to.iter().map(|to| vector.edge(from, to)));
    if edges().any(|edge| !edge.replayable) {
        return Some("keeps whatever it may have to send again");
    }
    if vector.runs > RUNS_MAX {
        return Some("takes long for so many runs; the budget is counted by its own test");
    }
    // Its Envoy obeys the vetoes of those who enforce, so there are fewer retries.
    let obeys = edges().any(|edge| {
        let (caller, callee) = (vector.node(&edge.from), vector.node(&edge.to));
        let retries = caller.retries == RetriesBy::Onus && edge.attempts >= Some(2);
        caller.onus
            && caller.mode != ModeName::Enforce
            && retries
            && callee.onus
            && callee.mode == ModeName::Enforce
            && !names[edge.to.as_str()].is_empty()
    });
    obeys.then_some("obeys the vetoes of an enforcing callee, whatever its own mode")
}

/// Of the 96 trees that there were.
const PASSED_MIN: usize = 81;

#[test]
fn a_real_envoy_passes_the_trees() {
    let Some(binary) = Envoy::binary("a_real_envoy_passes_the_trees") else { return };
    let vectors = Vectors { steps: Vec::new(), trees: Vectors::shipped().trees };
    let is_old = Envoy::is_old(&binary);
    let runtime = Runtime::new().unwrap();
    let dir = scratch();
    std::fs::create_dir_all(&dir).unwrap();
    let trees = || vectors.trees.iter().filter(|vector| not_expressible(vector).is_none());
    let (envoy, applications) = runtime.block_on(async {
        let applications = Applications::start(trees().cloned().collect()).await;
        let config = config::of_trees(trees(), applications.address(), &dir);
        let envoy = Envoy::start(&binary, &config.to_string()).await;
        applications.call_through(|node| envoy.port(node));
        (envoy, applications)
    });
    let mut host = RealEnvoy { runtime, is_old, envoy, applications };
    let report = run_all(&mut host, &vectors);
    report.assert_none_failed();
    let passed = report.outcomes.len() - report.unsupported().count();
    assert!(passed >= PASSED_MIN - usize::from(is_old), "{report}");
    std::fs::remove_dir_all(&dir).unwrap();
}
