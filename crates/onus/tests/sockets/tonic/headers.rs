//! What gRPC's own retries say and are told: previous attempts, and pushback.

use std::time::Duration;

use http::{Response, header};
use onus::{Mode, Onus, RetryPolicy};
use tokio::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::{Request, Status};

use super::node::Node;
use super::two;
use super::wire::Client;
use crate::cast::{Pieces, counted, said};
use crate::sockets::peer::{Answers, Peer};

const PREVIOUS: &str = "grpc-previous-rpc-attempts";
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// A failure with a line more.
fn unavailable(name: &'static str, value: &'static str) -> Option<Response<Pieces>> {
    let answer = Response::builder().header(header::CONTENT_TYPE, "application/grpc");
    let answer = answer.header("grpc-status", "14").header("onus-claim", "claimed");
    Some(answer.header(name, value).body(Pieces::empty()).unwrap())
}

#[tokio::test]
async fn attempts_of_a_grpc_library_are_counted() {
    // [attempt-2] [attempt-3]
    let ledger = Onus::builder("ledger").build().unwrap();
    let node = Node::start(&ledger, |_| async { Err(Status::unavailable("out of order")) }).await;
    for (previous, attempt) in [(None, ";attempt=1;"), (Some("2"), ";attempt=3;")] {
        let mut request = Request::new("ask".to_owned());
        if let Some(previous) = previous {
            request.metadata_mut().insert(PREVIOUS, MetadataValue::from_static(previous));
        }
        let status = Client::plain(node.address).unary(request).await.unwrap_err();
        let claim = status.metadata().get("onus-claim").unwrap().to_str().unwrap();
        assert!(claim.contains(attempt), "{previous:?}: {claim}");
    }
}

#[tokio::test]
async fn retries_are_numbered_for_callees_with_onus_and_without() {
    // [attempt-1] [attempt-12]
    let peer = Peer::start(|_, _| unavailable("x-other", "1")).await;
    let check = async |mode, previous: Option<&'static str>, written: [Option<&str>; 2]| {
        let shop = Onus::builder("shop").mode(mode).retry("ledger", two()).build().unwrap();
        let mut request = Request::new("ask".to_owned());
        if let Some(previous) = previous {
            request.metadata_mut().insert(PREVIOUS, MetadataValue::from_static(previous));
        }
        let mut client = Client::new(&shop, "ledger", peer.address);
        client.unary(request).await.unwrap_err();
        let sent = peer.take();
        let lines = |name| -> Vec<_> {
            let line = |sent: &http::Request<_>| sent.headers().get(name).cloned();
            sent.iter()
                .map(|sent| line(sent).map(|value| value.to_str().unwrap().to_owned()))
                .collect()
        };
        let numbered = (mode != Mode::Off).then(|| "2".to_owned());
        assert_eq!(lines("onus-attempt"), [None, numbered], "{mode:?}");
        assert_eq!(lines(PREVIOUS), written.map(|line| line.map(str::to_owned)), "{mode:?}");
    };
    for mode in [Mode::Off, Mode::Observe] {
        check(mode, None, [None, None]).await;
        check(mode, Some("1"), [Some("1"), Some("1")]).await;
    }
    check(Mode::ENFORCE, None, [None, Some("1")]).await;
    check(Mode::ENFORCE, Some("1"), [Some("1"), Some("2")]).await;
}

#[tokio::test(start_paused = true)]
async fn a_callee_that_pushes_back_is_obeyed() {
    // [decide-2] [decide-4] [decide-14]
    let check = async |answers: Answers, attempts: usize, least: u128, stop: &str| {
        let peer = Peer::start(answers).await;
        let policy = two().backoff(Duration::ZERO, Duration::ZERO).deadline(Duration::from_secs(5));
        let shop = Onus::builder("shop").enforce().retry("ledger", policy).build().unwrap();
        let start = Instant::now();
        let mut client = Client::new(&shop, "ledger", peer.address);
        client.unary("ask".to_owned()).await.unwrap_err();
        let waited = start.elapsed().as_millis();
        assert!((least..least + 5).contains(&waited), "{waited} ms");
        assert_eq!(peer.take().len(), attempts);
        let stopped = counted(&shop, "onus_retries_not_made_total", &[("reason", stop)]);
        assert_eq!(stopped, 1, "{stop}");
    };
    check(|_, _| unavailable(PUSHBACK, "-1"), 1, 0, "pushback").await;
    check(|_, _| unavailable(PUSHBACK, "soon"), 1, 0, "pushback").await;
    check(|_, _| unavailable(PUSHBACK, "60000"), 1, 0, "pushback").await;
    check(|_, _| unavailable(PUSHBACK, "120"), 2, 120, "exhausted").await;
    check(|_, _| unavailable("x-other", "120"), 2, 0, "exhausted").await;
}

#[tokio::test]
async fn callers_without_onus_are_pushed_back_from_unclaimed_errors() {
    // [wire-11] [wire-12]
    let check = async |enforce: bool, attempts, claim: &str, pushback: Option<&str>| {
        let peer = Peer::start(|_, _| unavailable("x-other", "1")).await;
        let policy = RetryPolicy::attempts(attempts).no_budget().no_probes();
        let shop = Onus::builder("shop").retry("ledger", policy);
        let shop = if enforce { shop.enforce() } else { shop }.build().unwrap();
        let client = Client::new(&shop, "ledger", peer.address);
        let node = Node::start(&shop, move |_| {
            let mut client = client.clone();
            async move { Err(client.unary("ask".to_owned()).await.unwrap_err()) }
        })
        .await;
        let status = Client::plain(node.address).unary("ask".to_owned()).await.unwrap_err();
        let block = status.metadata().clone().into_headers();
        assert_eq!(said(&block), claim);
        let found = block.get(PUSHBACK).map(|value| value.to_str().unwrap());
        assert_eq!(found, pushback, "{claim}");
    };
    check(true, 2, "unclaimed exhausted", Some("-1")).await;
    check(false, 2, "unclaimed exhausted", None).await;
    // A retry is open: whoever calls may make it.
    check(true, 1, "claimed handoff", None).await;
}
