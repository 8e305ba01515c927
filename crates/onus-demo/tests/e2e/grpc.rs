//! The same services over HTTP/2 and gRPC: what is on the wire, and the one count that differs.

use ::http::{HeaderMap, Request};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use onus::Mode;
use onus_demo::{Cluster, Demo, Fault, Load, Node, Policy, Protocol, Topology, What};

use super::http;

/// An answer's two header blocks, and the message between.
struct Answer {
    head: HeaderMap,
    message: Bytes,
    trailers: Option<HeaderMap>,
}

/// Calls the first service as any gRPC client does.
async fn call(cluster: &Cluster) -> Answer {
    let uri = format!("http://{}/onus.demo.Node/Call", cluster.addresses()[0].1);
    let request = Request::post(uri).header("content-type", "application/grpc");
    let request = request.header("te", "trailers").body(Full::new(EMPTY)).unwrap();
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let (head, body) = client.request(request).await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    assert_eq!(head.headers["content-type"], "application/grpc");
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned();
    Answer { head: head.headers, message: body.to_bytes(), trailers }
}

/// What a block has of a status, a claim and a veto.
fn said(block: &HeaderMap) -> Vec<&str> {
    let names = ["grpc-status", "onus-claim", "grpc-retry-pushback-ms"];
    names.iter().filter_map(|name| block.get(*name)).map(|value| value.to_str().unwrap()).collect()
}

fn chain(what: Option<What>, head_first: bool) -> Topology {
    let mut topology = Topology::chain(["A", "B"]);
    topology.protocol = Protocol::Grpc;
    topology.services[0].callees[0].attempts = 2;
    topology.services[0].head_first = head_first;
    topology.services[1].faults = what.map(Fault::always).into_iter().collect();
    topology
}

#[tokio::test]
async fn an_error_is_in_one_block_or_in_trailers_and_its_claim_with_it() {
    const ERROR: [&str; 3] =
        ["14", r#"unclaimed;reason=exhausted;attempt=1;origin="B";hops=1"#, "-1"];
    for head_first in [false, true] {
        let cluster = Cluster::start(&chain(Some(What::Fails), head_first)).await.unwrap();
        let answer = call(&cluster).await;
        assert_eq!(answer.message, "");
        let (head, trailers) = (said(&answer.head), answer.trailers.as_ref().map(said));
        match head_first {
            false => assert_eq!((&head[..], trailers), (&ERROR[..], None)),
            true => assert_eq!((&head[..], trailers), (&[][..], Some(ERROR.to_vec()))),
        }
    }
}

#[tokio::test]
async fn a_success_is_a_message_and_its_trailers() {
    let cluster = Cluster::start(&chain(None, false)).await.unwrap();
    let answer = call(&cluster).await;
    assert_eq!(answer.message, EMPTY);
    assert_eq!((said(&answer.head), said(&answer.trailers.unwrap())), (vec![], vec!["0"]));
}

#[tokio::test]
async fn the_demo_is_the_same_in_every_protocol() {
    for protocol in Protocol::ALL {
        let demo = Demo { requests: 10, protocol, ..Demo::default() };
        for (policy, seen) in [
            (Policy::Everywhere, "failed with "),
            (Policy::Ownership, "failed at D, 3 hops down: retry closed"),
        ] {
            let run = demo.run(policy).await.unwrap();
            assert_eq!(Some(run.handled), run.expected, "{policy:?} over {protocol:?}");
            let (error, times) = run.report.most_seen().unwrap();
            assert!(error.to_string().starts_with(seen), "{error} over {protocol:?}");
            assert_eq!(times, 10);
        }
    }
    let grpc = Demo { requests: 1, protocol: Protocol::Grpc, ..Demo::default() };
    for (fail, seen) in
        [(Node::D, "failed with gRPC status 14"), (Node::A, "failed with gRPC status 13")]
    {
        let run = Demo { fail, ..grpc }.run(Policy::None).await.unwrap();
        assert_eq!(run.report.most_seen().unwrap().0.to_string(), seen);
    }
}

#[tokio::test]
async fn a_caller_that_is_off_obeys_the_veto_of_grpc() {
    for (protocol, counts) in [
        (Protocol::Http1, [1, 2, 4, 8]),
        (Protocol::Http2, [1, 2, 4, 8]),
        // C enforces, and its veto is one that every gRPC caller reads.
        (Protocol::Grpc, [1, 2, 2, 4]),
    ] {
        let mut topology = Topology::chain(["A", "B", "C", "D"]);
        topology.protocol = protocol;
        for callee in topology.services.iter_mut().flat_map(|service| &mut service.callees) {
            callee.attempts = 2;
        }
        topology.services[1].mode = Mode::Off;
        topology.services[3].faults = vec![Fault::always(What::Fails)];
        let cluster = Cluster::start(&topology).await.unwrap();
        cluster.send(Load::new(1, 1)).await.unwrap();
        assert_eq!(http::counts(&cluster).await, counts, "{protocol:?}");
    }
}

/// An empty message: not compressed, and no byte long.
const EMPTY: Bytes = Bytes::from_static(&[0; 5]);
