//! Requests that were provably not worked on are sent over a second connection, once for a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use h2::Reason;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::cast::{Client, Line, TWICE, between, frames, lines, streams_with};
use crate::operations::admin::get;

/// A call to a stub that refuses so many streams: its status, and how many streams there were.
async fn refused(method: &str, refusals: usize, more: &str) -> (u16, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = count.clone();
    let stub = streams_with(h2::server::Builder::new(), move |mut stream| {
        let number = counts.fetch_add(1, Ordering::Relaxed);
        async move {
            if number < refusals {
                return stream.reset(Reason::REFUSED_STREAM);
            }
            let seen = stream.request().await.expect("as the test sets it up");
            assert_eq!(seen.body, "17 EUR");
            stream.ends(200, &[]);
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], more).await;
    let client = Client::to(proxy.outbound()).await;
    let status = client
        .send(method, "/", "17 EUR", &[])
        .await
        .expect("as the test sets it up")
        .status()
        .as_u16();
    (status, count.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_refused_stream_is_opened_again_once_whatever_the_method() {
    // [attempt-8] [attempt-11] S14
    for (method, refusals, more, expected) in [
        ("GET", 1, "", (200, 2)),
        ("POST", 1, "", (200, 2)),
        ("POST", 2, "", (502, 2)),
        // The second attempt is the policy's.
        ("GET", 2, TWICE, (200, 3)),
        ("GET", 9, TWICE, (502, 3)),
        ("POST", 9, TWICE, (502, 2)),
    ] {
        let comma = if more.is_empty() { "" } else { ", " };
        let got = refused(method, refusals, &format!("{comma}{more}")).await;
        assert_eq!(got, expected, "{method} {refusals} {more}");
    }
}

#[tokio::test]
async fn a_body_that_is_gone_is_not_sent_again_and_not_counted_as_if_it_were() {
    let stub = streams_with(h2::server::Builder::new(), |mut stream| async move {
        // More than is kept.
        stream.bytes(100_000).await;
        stream.reset(Reason::REFUSED_STREAM);
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let client = Client::to(proxy.outbound()).await;
    let answer = client.send("POST", "/", &"x".repeat(100_000), &[]).await.expect("an answer");
    assert_eq!(answer.status(), 502);
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    assert!(metrics.contains("onus_proxy_resends_total{callee=\"peer\"} 0\n"), "{metrics}");
}

#[tokio::test]
async fn a_callee_that_goes_away_works_on_every_request_once() {
    // [attempt-11] S16
    let stub = frames(100, |mut frames| async move {
        if frames.number > 0 {
            while let Some(request) = frames.request().await {
                frames.ok(request.stream).await;
            }
            return;
        }
        let mut last = 0;
        for _ in 0..10 {
            last = frames.request().await.unwrap().stream;
        }
        // Of the ten, five were looked at.
        frames.goaway(last - 10).await;
        for stream in (1..=last - 10).step_by(2) {
            frames.ok(stream).await;
        }
        while frames.request().await.is_some() {}
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let client = Client::to(proxy.outbound()).await;
    let mut calls = JoinSet::new();
    for number in 0..10 {
        let client = client.clone();
        calls.spawn(async move {
            client.send("POST", "/", &format!("charge {number}"), &[]).await.unwrap().status()
        });
    }
    let statuses = calls.join_all().await;
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(stub.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_was_idle_costs_nothing() {
    // [attempt-11] S17
    for method in ["GET", "POST"] {
        let stub = lines(|mut line| async move {
            if line.request().await.is_some() {
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            }
        })
        .await;
        let proxy = between(stub.address, &[stub.address], "").await;
        let mut line = Line::to(proxy.outbound()).await;
        for number in 1..=20 {
            line.say(format!("{method} / HTTP/1.1\r\nhost: peer\r\ncontent-length: 0\r\n\r\n"))
                .await;
            let head = line.head().await.unwrap();
            assert_eq!(head.status(), 200, "{method} {number}");
            line.body(&head).await.unwrap();
        }
        assert_eq!(stub.seen().len(), 20, "{method}");
    }
}

#[tokio::test]
async fn what_may_have_been_done_is_not_sent_again() {
    // S19
    let stub = lines(|mut line| async move {
        // The first request of each connection is answered, the second only read.
        for answers in [true, false] {
            if line.request().await.is_none() {
                return;
            }
            if answers {
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
            }
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    for status in [200, 502] {
        line.say("POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: 2\r\n\r\n17").await;
        let head = line.head().await.unwrap();
        assert_eq!(head.status(), status);
        line.body(&head).await.unwrap();
    }
    assert_eq!(stub.seen().len(), 2, "the charge was made once");
}

#[tokio::test]
async fn a_connection_is_shared_and_another_is_opened_where_its_streams_are_taken() {
    let mut settings = h2::server::Builder::new();
    settings.max_concurrent_streams(10);
    let together = Arc::new(Barrier::new(25));
    let stub = streams_with(settings, move |mut stream| {
        let together = together.clone();
        async move {
            stream.request().await;
            if stream.number > 0 {
                together.wait().await;
            }
            stream.ends(200, &[]);
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let client = Client::to(proxy.outbound()).await;
    // The callee's settings have come when the first answer has.
    assert_eq!(client.send("GET", "/", "", &[]).await.unwrap().status(), 200);
    let mut calls = JoinSet::new();
    for _ in 0..25 {
        let client = client.clone();
        calls.spawn(async move { client.send("GET", "/", "", &[]).await.unwrap().status() });
    }
    assert!(calls.join_all().await.iter().all(|status| *status == 200));
    assert_eq!(stub.connections(), 3);
}

/// So many calls at once to a callee that nobody has called yet and that allows so many streams, and
/// answers when so many requests have come: how many connections there were.
async fn at_once(calls: usize, allowed: u32, together: usize) -> usize {
    let mut settings = h2::server::Builder::new();
    settings.max_concurrent_streams(allowed);
    let barrier = Arc::new(Barrier::new(together));
    let stub = streams_with(settings, move |mut stream| {
        let barrier = barrier.clone();
        async move {
            stream.request().await;
            barrier.wait().await;
            stream.ends(200, &[]);
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let client = Client::to(proxy.outbound()).await;
    let mut tasks = JoinSet::new();
    for _ in 0..calls {
        let client = client.clone();
        tasks.spawn(async move { client.send("POST", "/", "x", &[]).await.unwrap().status() });
    }
    assert!(tasks.join_all().await.iter().all(|status| *status == 200));
    assert_eq!(stub.seen().len(), calls, "no stream was refused");
    stub.connections()
}

#[tokio::test]
async fn calls_that_come_at_once_share_a_connection_and_no_stream_is_refused() {
    assert_eq!(at_once(64, 100, 64).await, 1);
    // It depends on when it says so how many connections there are; all calls are answered anyway.
    assert!(at_once(60, 10, 10).await <= 4);
}
