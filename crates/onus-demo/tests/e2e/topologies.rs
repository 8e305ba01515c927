//! What a topology may say, and what a cluster does beside counting.

use onus_demo::{
    CalleeConfig, Cluster, DemoError, Fault, Load, ServiceConfig, Topology, What, When,
};

use super::http;

#[tokio::test]
async fn names_that_lead_nowhere_are_named() {
    async fn check(services: Vec<ServiceConfig>, message: &str) {
        let topology = Topology { services, ..Topology::chain([]) };
        let error = Cluster::start(&topology).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let calls = |name: &str, callee: CalleeConfig| ServiceConfig {
        callees: vec![callee],
        ..ServiceConfig::new(name)
    };
    let a = || ServiceConfig::new("A");
    check(vec![], "start a topology without services").await;
    check(vec![a(), a()], "start two services with the name \"A\"").await;
    let lost = calls("A", CalleeConfig::new("B"));
    check(vec![lost], "find the service \"B\" that \"A\" calls").await;
    let eager = CalleeConfig { attempts: 99, ..CalleeConfig::new("B") };
    check(vec![calls("A", eager), ServiceConfig::new("B")], "configure the service \"A\"").await;
}

#[tokio::test]
async fn the_same_seed_fails_the_same_requests() {
    async fn run(rate: f64, seed: u64) -> (u64, Vec<u64>) {
        let mut topology = Topology::chain(["A", "B"]);
        topology.seed = seed;
        topology.services[0].callees[0].attempts = 2;
        topology.services[1].faults = vec![Fault { what: What::Fails, when: When::Share(rate) }];
        let cluster = Cluster::start(&topology).await.unwrap();
        let report = cluster.send(Load::new(100, 1)).await.unwrap();
        (report.client_errors, http::counts(&cluster).await)
    }
    assert_eq!(run(0.0, 7).await, (0, vec![100, 100]));
    assert_eq!(run(1.0, 7).await, (100, vec![100, 200]));
    let (errors, counts) = run(0.5, 7).await;
    assert!(errors > 0 && errors + 100 < counts[1], "{errors} {counts:?}");
    assert_eq!(run(0.5, 7).await, (errors, counts.clone()));
    assert_ne!(run(0.5, 8).await, (errors, counts));
}

#[tokio::test]
async fn each_cluster_starts_from_nothing() -> Result<(), DemoError> {
    let topology = Topology::chain(["A", "B"]);
    for _ in 0..2 {
        let cluster = Cluster::start(&topology).await?;
        assert_eq!(http::counts(&cluster).await, [0, 0]);
        cluster.send(Load::new(5, 9)).await?;
        assert_eq!(http::counts(&cluster).await, [5, 5]);
        assert_eq!(cluster.counts().await?, [5, 5]);
    }
    Ok(())
}
