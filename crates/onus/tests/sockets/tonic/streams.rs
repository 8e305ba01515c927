//! The four kinds of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onus::{Onus, OnusBuilder, RetryPolicy};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::node::{Messages, Node, says};
use super::two;
use super::wire::{Client, TALK, UNARY, UPLOAD, WATCH, all};
use crate::cast::{Pieces, counted, said};
use crate::sockets::peer::{Answers, Peer};

#[tokio::test]
async fn all_kinds_of_calls_pass_through_both_layers() {
    let ledger = Onus::builder("ledger").enforce().build().unwrap();
    let node = Node::start(&ledger, |messages| async move {
        let (text, end) = all(messages).await;
        end?;
        Ok(says(&[&text.to_uppercase()], Ok(())))
    })
    .await;
    let shop = Onus::builder("shop").enforce().build().unwrap();
    let mut client = Client::new(&shop, "ledger", node.address);
    for method in [UNARY, UPLOAD, WATCH, TALK] {
        let (text, end) = client.call(method).await;
        assert_eq!((&*text, end.is_ok()), ("AB", true), "{method} {end:?}");
        let calls = [("callee_method", method), ("outcome", "ok")];
        assert_eq!(counted(&shop, "onus_calls_total", &calls), 1, "{method}");
        let requests = [("method", method), ("outcome", "ok")];
        assert_eq!(counted(&ledger, "onus_requests_total", &requests), 1, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_the_head_before_its_next_message_never_blocks() {
    // [decide-17]
    let ledger = Onus::builder("ledger").build().unwrap();
    // The head at once, and a message for each that comes.
    let node = Node::start(&ledger, |messages| async move { Ok(messages) }).await;
    let shop = Onus::builder("shop").enforce().retry("ledger", two()).build().unwrap();
    let mut client = Client::new(&shop, "ledger", node.address);
    let (say, words) = tokio::sync::mpsc::channel(1);
    let start = Instant::now();
    // Nothing is said before the head is there.
    let mut answer = client.talk(ReceiverStream::new(words)).await.unwrap().into_inner();
    // Who looked for the first message here would wait until that is given up.
    assert_eq!(start.elapsed(), Duration::ZERO);
    for word in ["one", "two"] {
        say.send(word.to_owned()).await.unwrap();
        assert_eq!(answer.message().await.unwrap().as_deref(), Some(word));
    }
    drop(say);
    assert_eq!(answer.message().await.unwrap(), None);
    drop(answer);
    assert_eq!(counted(&shop, "onus_calls_total", &[("outcome", "ok")]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_has_its_head_at_once_where_its_procedure_is_not_retried() {
    // [decide-17]
    let check = async |onus: OnusBuilder, head_at: u64| {
        let ledger = Onus::builder("ledger").build().unwrap();
        let quiet = |_| async { Ok(Box::pin(tokio_stream::pending()) as Messages) };
        let node = Node::start(&ledger, quiet).await;
        let mut client = Client::new(&onus.build().unwrap(), "ledger", node.address);
        let start = Instant::now();
        client.watch("news".to_owned()).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), head_at);
    };
    let shop = || Onus::builder("shop").enforce().retry("ledger", two());
    check(shop(), 1).await;
    check(shop().retry_procedure("ledger", WATCH, RetryPolicy::attempts(1)), 0).await;
}

#[tokio::test]
async fn a_stream_that_fails_behind_a_message_is_counted_and_claimed() {
    // [decide-7] [claim-5] [wire-1]
    let (ledger, shop) = (Onus::builder("ledger").enforce(), Onus::builder("shop").enforce());
    let (ledger, shop) = (ledger.build().unwrap(), shop.retry("ledger", two()).build().unwrap());
    let out_of_order = || Err(Status::unavailable("out of order"));
    let callee = Node::start(&ledger, move |_| async move { Ok(says(&["part"], out_of_order())) });
    let callee = callee.await;
    let client = Client::new(&shop, "ledger", callee.address);
    let caller = Node::start(&shop, move |_| {
        let mut client = client.clone();
        async move {
            // Each message goes on as it comes, and so does the status behind them.
            let stream = client.watch("all of it".to_owned()).await?.into_inner();
            Ok(Box::pin(stream) as Messages)
        }
    })
    .await;
    let (text, end) = Client::plain(caller.address).call(WATCH).await;
    let status = end.expect_err("the ledger fails");
    assert_eq!((&*text, status.code()), ("part", Code::Unavailable));
    assert_eq!(said(&status.metadata().clone().into_headers()), "claimed handoff");
    assert_eq!((caller.calls(), callee.calls()), (1, 1));
    assert_eq!(counted(&shop, "onus_calls_total", &[("outcome", "error")]), 1);
    let stopped = [("reason", "not-replayable")];
    assert_eq!(counted(&shop, "onus_retries_not_made_total", &stopped), 1);
    for onus in [&shop, &ledger] {
        assert_eq!(counted(onus, "onus_requests_total", &[("outcome", "error")]), 1);
    }
}

#[tokio::test]
async fn an_interceptor_runs_once_for_all_attempts() {
    let answers: Answers = |_, _| {
        let answer = http::Response::builder().header("content-type", "application/grpc");
        Some(answer.header("grpc-status", "14").body(Pieces::empty()).unwrap())
    };
    let peer = Peer::start(answers).await;
    let shop = Onus::builder("shop").retry("ledger", two()).build().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let ledger = onus_channel(&shop, peer.address);
    let mut client = HealthClient::with_interceptor(ledger, move |mut request: Request<()>| {
        let run = counted.fetch_add(1, Ordering::Relaxed);
        request.metadata_mut().insert("x-run", run.into());
        Ok(request)
    });
    client.check(HealthCheckRequest::default()).await.unwrap_err();
    let runs_seen: Vec<_> =
        peer.take().iter().map(|sent| sent.headers()["x-run"].clone()).collect();
    assert_eq!((runs.load(Ordering::Relaxed), runs_seen), (1, vec!["0".parse().unwrap(); 2]));
}

fn onus_channel(onus: &Onus, address: std::net::SocketAddr) -> onus::tonic::Channel {
    onus.outbound("ledger").tonic(super::wire::channel(address))
}

#[tokio::test]
async fn a_talk_that_is_refused_at_once_is_begun_again() {
    let ledger = Onus::builder("ledger").build().unwrap();
    let refused = AtomicUsize::new(0);
    let node = Node::start(&ledger, move |messages| {
        let refuse = refused.fetch_add(1, Ordering::Relaxed) == 0;
        async move { if refuse { Err(Status::unavailable("not yet")) } else { Ok(messages) } }
    })
    .await;
    let shop = Onus::builder("shop").enforce().retry("ledger", two()).build().unwrap();
    let mut client = Client::new(&shop, "ledger", node.address);
    let (say, words) = tokio::sync::mpsc::channel(2);
    say.send("one".to_owned()).await.unwrap();
    let mut answer = client.talk(ReceiverStream::new(words)).await.unwrap().into_inner();
    say.send("two".to_owned()).await.unwrap();
    drop(say);
    let (text, end) = all(&mut answer).await;
    assert_eq!((&*text, end.is_ok(), node.calls()), ("onetwo", true, 2));
}
