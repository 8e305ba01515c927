//! The time that a caller allows, and callers who go.
//!
//! The clock stands still while there is anything to do: on loopback what was sent is there at once.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::TokioExecutor;
use onus::{CallOutcome, Onus, RetryPolicy};
use tonic::Code;
use tonic::body::Body;
use tower::ServiceExt;

use super::node::Node;
use super::wire::{Client, UNARY, channel};
use super::{framed, two};
use crate::cast::{Piece, Pieces, counted, said, until};
use crate::sockets::peer::Peer;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The milliseconds that the callee has, and those after which the channel gives up.
fn told(sent: &Request<Bytes>) -> (Option<u64>, Option<u64>) {
    let line = |name| Some(sent.headers().get(name)?.to_str().unwrap());
    let callee = line("x-envoy-expected-rq-timeout-ms").map(|value| value.parse().unwrap());
    let channel = line("grpc-timeout").map(|value| {
        let micros: u64 = value.strip_suffix('u').expect(value).parse().unwrap();
        micros / 1000
    });
    (callee, channel)
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_told_what_is_left_of_the_callers_time() {
    // [deadline-1] [deadline-2] [deadline-3] [deadline-8]
    let told = told_by(true).await;
    let [(Some(first), Some(longer)), (Some(second), Some(_))] = told[..] else {
        panic!("{told:?}");
    };
    // 5 % of 60 s are more than the largest margin.
    assert!((50_000..=59_900).contains(&first), "{told:?}");
    assert!((199..=201).contains(&(longer - first)), "{told:?}");
    assert!(second <= first - 100, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_observing_service_leaves_time_alone() {
    // [mode-10]
    assert_eq!(told_by(false).await, [(None, None); 2]);
}

/// What each of two attempts is told that a service makes for a caller who waits a minute. They are
/// 100 ms apart.
async fn told_by(enforce: bool) -> Vec<(Option<u64>, Option<u64>)> {
    let peer = Peer::start(|_, _| {
        // A status that comes late, behind nothing.
        let late = [Piece::Wait(ms(100)), Piece::Trailers(vec![("grpc-status", "14")])];
        let answer = Response::builder().header(header::CONTENT_TYPE, "application/grpc");
        Some(answer.body(Pieces::new(late)).unwrap())
    })
    .await;
    let shop = Onus::builder("shop").retry("ledger", two());
    let shop = if enforce { shop.enforce() } else { shop }.build().unwrap();
    let client = Client::new(&shop, "ledger", peer.address);
    let node = Node::start(&shop, move |_| {
        let mut client = client.clone();
        async move { Err(client.unary("ask".to_owned()).await.unwrap_err()) }
    })
    .await;
    let mut request = tonic::Request::new("ask".to_owned());
    request.set_timeout(Duration::from_secs(60));
    Client::plain(node.address).unary(request).await.unwrap_err();
    peer.take().iter().map(told).collect()
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_by_the_clock_of_its_caller_and_not_by_that_of_the_channel() {
    // [deadline-8]
    let peer = Peer::start(|_, _| None).await;
    for limited in [two().deadline(ms(100)), two().per_try_timeout(ms(50))] {
        let shop = Onus::builder("shop").enforce().retry("ledger", limited).build().unwrap();
        let mut client = Client::new(&shop, "ledger", peer.address);
        let status = client.unary("ask".to_owned()).await.unwrap_err();
        // The channel's own would be CANCELLED, which is no error to anybody.
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_answers_with_a_claim_before_its_caller_gives_up() {
    // [deadline-5] [claim-12]
    let ledger = Onus::builder("ledger").enforce().build().unwrap();
    // A handler that waits for something no layer sees.
    let node = Node::start(&ledger, |_| std::future::pending()).await;
    let policy = RetryPolicy::attempts(1).deadline(ms(1000));
    let shop = Onus::builder("shop").enforce().retry("ledger", policy).build().unwrap();
    let request = Request::post(format!("http://{}{UNARY}", node.address))
        .header(header::CONTENT_TYPE, "application/grpc")
        .body(Body::new(Pieces::sized(framed("ask"))))
        .unwrap();
    let ledger = shop.outbound("ledger").tonic(channel(node.address));
    let answer = ledger.oneshot(request).await.expect("an answer");
    let outcome = answer.extensions().get::<CallOutcome>().expect("a failure");
    assert_eq!((outcome.read.as_str(), outcome.attempts), ("claimed", 1), "{outcome:?}");
    let origin = outcome.origin.as_ref().expect("an origin");
    assert_eq!((&*origin.service, origin.hops), ("ledger", 1));
    assert_eq!(answer.headers()["grpc-status"], (Code::DeadlineExceeded as i32).to_string());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_caller_without_onus_is_kept() {
    // [deadline-5] [claim-12]
    let ledger = Onus::builder("ledger").enforce().build().unwrap();
    let node = Node::start(&ledger, |_| std::future::pending()).await;
    let answers = (0..20).map(|_| {
        let request = Request::post(format!("http://{}{UNARY}", node.address))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header("grpc-timeout", "100m")
            .body(Pieces::sized(framed("ask")))
            .unwrap();
        let pool = Pool::builder(TokioExecutor::new()).http2_only(true).build_http();
        tokio::spawn(async move { pool.request(request).await })
    });
    for answer in answers.collect::<Vec<_>>() {
        let answer = answer.await.unwrap().expect("an answer");
        assert_eq!(answer.headers()["grpc-status"], (Code::DeadlineExceeded as i32).to_string());
        assert_eq!(said(answer.headers()), "claimed own");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_the_attempts_made_for_it() {
    // [deadline-4]
    let build = |name| Onus::builder(name).enforce().retry("ledger", two()).build().unwrap();
    let (shop, ledger) = (build("shop"), build("ledger"));
    let callee = Node::start(&ledger, |_| std::future::pending()).await;
    let client = Client::new(&shop, "ledger", callee.address);
    let caller = Node::start(&shop, move |_| {
        let mut client = client.clone();
        async move { Err(client.unary("ask".to_owned()).await.unwrap_err()) }
    })
    .await;
    let mut plain = Client::plain(caller.address);
    let call = tokio::spawn(async move { plain.unary("ask".to_owned()).await });
    until(|| callee.calls() == 1).await;
    call.abort();
    let cancelled = |onus| counted(onus, "onus_requests_total", &[("outcome", "cancelled")]);
    until(|| cancelled(&shop) == 1 && cancelled(&ledger) == 1).await;
    assert_eq!(counted(&shop, "onus_calls_total", &[("outcome", "abandoned")]), 1);
    assert_eq!(counted(&shop, "onus_retries_total", &[("verdict", "made")]), 0);
    assert_eq!(callee.calls(), 1);
}
