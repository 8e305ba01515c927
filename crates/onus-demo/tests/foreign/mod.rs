//! A gRPC client without Onus, with retries of its own, in front of services with it.

mod peer;

use onus::Mode;
use onus_conformance::Vectors;
use onus_demo::{Cluster, Fault, Protocol, ServiceConfig, Topology, What, When};

use self::peer::{Peer, Seen};
use super::e2e::http;

/// Services A to D over gRPC, in this mode; all try twice, and D fails.
fn chain(mode: Mode) -> Topology {
    let mut topology = Topology::chain(["A", "B", "C", "D"]);
    topology.protocol = Protocol::Grpc;
    for service in &mut topology.services {
        service.mode = mode;
        service.callees.iter_mut().for_each(|callee| callee.attempts = 2);
    }
    topology.services[3].faults = vec![Fault::always(What::Fails)];
    topology
}

/// One service that fails by itself.
fn alone(change: impl Fn(&mut ServiceConfig)) -> Topology {
    let mut topology = Topology::chain(["A"]);
    topology.protocol = Protocol::Grpc;
    topology.services[0].faults = vec![Fault::always(What::Fails)];
    change(&mut topology.services[0]);
    topology
}

/// Calls the first service; the requests that each has handled, and what the client has seen.
async fn run(peer: &Peer, topology: &Topology, calls: u64, config: &str) -> (Vec<u64>, Vec<Seen>) {
    let cluster = Cluster::start(topology).await.unwrap();
    let seen = peer.call(cluster.addresses()[0].1, calls, config).await;
    cluster.settled().await;
    assert_eq!(seen.len() as u64, calls);
    (http::counts(&cluster).await, seen)
}

/// The counts of a vector, each so many times.
fn counts(vector: &str, times: u64) -> Vec<u64> {
    let vectors = Vectors::shipped();
    let vector = vectors.trees.iter().find(|tree| tree.name == vector).unwrap();
    vector.counts.values().map(|count| count * times).collect()
}

#[tokio::test]
async fn it_stops_where_an_enforcing_chain_has_retried() {
    let Some(peer) = Peer::of("it_stops_where_an_enforcing_chain_has_retried").await else {
        return;
    };
    let (handled, seen) = run(&peer, &chain(Mode::ENFORCE), CALLS, FOUR_ATTEMPTS).await;
    assert_eq!(handled, counts("ownership, every hop tries twice", CALLS));
    for seen in seen {
        assert_eq!((&*seen.status, &*seen.pushback), ("UNAVAILABLE", "-1"));
        let claim = r#"unclaimed;reason=suppressed;attempt=1;origin="D";hops=3"#;
        assert_eq!(seen.claim, claim);
    }
}

#[tokio::test]
async fn it_retries_an_observing_chain_as_one_that_is_off() {
    let Some(peer) = Peer::of("it_retries_an_observing_chain_as_one_that_is_off").await else {
        return;
    };
    let (off, seen) = run(&peer, &chain(Mode::Off), CALLS, FOUR_ATTEMPTS).await;
    assert_eq!(off, counts("no ownership, every hop tries twice", 4 * CALLS));
    assert!(seen.iter().all(|seen| (&*seen.pushback, &*seen.claim) == ("-", "-")), "{seen:?}");
    let (observed, seen) = run(&peer, &chain(Mode::Observe), CALLS, FOUR_ATTEMPTS).await;
    assert_eq!(observed, off);
    // Its attempts are counted by what it says of them.
    let claim = r#"unclaimed;reason=suppressed;attempt=4;origin="D";hops=3"#;
    assert!(seen.iter().all(|seen| (&*seen.pushback, &*seen.claim) == ("-", claim)), "{seen:?}");
}

#[tokio::test]
async fn it_retries_what_is_claimed_and_nothing_behind_a_shield() {
    let Some(peer) = Peer::of("it_retries_what_is_claimed_and_nothing_behind_a_shield").await
    else {
        return;
    };
    for (shield, handled, pushback) in [(false, 4, "-"), (true, 1, "-1")] {
        let topology = alone(|service| service.shield = shield);
        let (counted, seen) = run(&peer, &topology, CALLS, FOUR_ATTEMPTS).await;
        assert_eq!(counted, [handled * CALLS], "{seen:?}");
        assert!(seen.iter().all(|seen| seen.pushback == pushback), "{seen:?}");
    }
}

#[tokio::test]
async fn it_takes_an_answer_as_given_once_its_head_is_there() {
    let Some(peer) = Peer::of("it_takes_an_answer_as_given_once_its_head_is_there").await else {
        return;
    };
    let topology = alone(|service| service.head_first = true);
    let (handled, seen) = run(&peer, &topology, CALLS, FOUR_ATTEMPTS).await;
    assert_eq!(handled, [CALLS]);
    let claim = r#"claimed;reason=own;attempt=1;origin="A";hops=0"#;
    assert!(seen.iter().all(|seen| seen.claim == claim), "{seen:?}");
}

#[tokio::test]
async fn a_veto_takes_a_token_of_its_throttle() {
    let Some(peer) = Peer::of("a_veto_takes_a_token_of_its_throttle").await else { return };
    let pair = |mode, a_fails_from: u64| {
        let mut topology = chain(mode);
        topology.services.drain(2..);
        topology.services[1].callees.clear();
        topology.services[1].faults = vec![Fault::always(What::Fails)];
        let when = When::Numbers((a_fails_from..99).collect());
        topology.services[0].faults = vec![Fault { what: What::FailsAtOnce, when }];
        topology
    };
    // After so many calls with a veto, so many attempts of one whose error is A's own.
    for (vetoed, attempts) in [(0, 4), (1, 4), (2, 3), (3, 2), (4, 1), (5, 1)] {
        let topology = pair(Mode::ENFORCE, vetoed + 1);
        let (handled, _) = run(&peer, &topology, vetoed + 1, THROTTLED).await;
        assert_eq!(handled, [vetoed + attempts, 2 * vetoed], "after {vetoed}");
    }
    // Without vetoes it makes four attempts of the first call, and has no token for the others.
    let (handled, _) = run(&peer, &pair(Mode::Observe, 99), CALLS, THROTTLED).await;
    assert_eq!(handled, [4 + 4, 2 * (4 + 4)]);
}

const CALLS: u64 = 5;

/// A wait below a millisecond would now and then never end: that is a fault of the client.
const FOUR_ATTEMPTS: &str = r#"{"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.01s",
    "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE", "INTERNAL"]}}]}"#;

/// The same, with ten tokens, of which more than five must be left for a retry.
const THROTTLED: &str = r#"{"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
    "methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.01s",
    "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE", "INTERNAL"]}}]}"#;
