//! Services on sockets as a host of the conformance vectors.

mod client;
mod topology;

use std::time::Duration;

use onus_conformance::tree::TreeVector;
use onus_conformance::{
    Counts, Host, Observation, Outcome, StepVector, Unsupported, Vectors, run_all,
};
use onus_demo::Cluster;
use tokio::runtime;
use tokio::time::timeout;

/// Services of the demo, each behind its own port.
struct Sockets(runtime::Runtime);

impl Host for Sockets {
    fn name(&self) -> &str {
        "sockets"
    }

    fn run_steps(&mut self, _: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        Err("the clock and the random numbers of a running service are its own".into())
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        let run = self.0.block_on(async { timeout(TOO_LONG, run(vector)).await });
        run.unwrap_or_else(|_| panic!("{:?} comes to no end", vector.name))
    }
}

async fn run(vector: &TreeVector) -> Result<Counts, Unsupported> {
    let cluster = Cluster::start(&topology::of(vector)?).await.unwrap();
    let client = client::of(cluster.addresses()[0].1);
    let mut answer = None;
    for _ in 0..vector.runs {
        answer = Some(client.read().await);
    }
    cluster.settled().await;
    let names = cluster.addresses().iter().map(|(name, _)| name.clone());
    let requests = names.zip(cluster.counts().await.unwrap()).collect();
    Ok(Counts { requests, answer })
}

#[test]
fn sockets_pass_the_trees() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let vectors = Vectors::shipped();
    let report = run_all(&mut Sockets(runtime), &vectors);
    report.assert_none_failed();
    let steps: Vec<_> = vectors.steps.iter().map(|vector| vector.name.as_str()).collect();
    assert_eq!(report.unsupported().collect::<Vec<_>>(), steps, "{report}");
    let all_seen = Outcome::Passed { unseen: Vec::new() };
    let passed = report.outcomes.iter().filter(|(_, outcome)| *outcome == all_seen);
    assert_eq!(passed.count(), vectors.trees.len(), "{report}");
    println!("{report}");
}

/// A tree takes seconds where it is long or somebody waits in it.
const TOO_LONG: Duration = Duration::from_secs(60);
