//! HTTP/2 callees that take no more: refused streams, connections that are going away, and callers
//! that give up many streams of one connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use h2::Reason;
use http::{Method, Request};
use onus::{Onus, RetryPolicy};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::raw::frames;
use super::relay::{Speaks::Http2, Wrapped, checkout, client, safe_twice, twice};
use super::streams::{streams, streams_with};
use crate::cast::{Pieces, counted, pass, paused_sockets, read, until};

fn request(method: Method, url: &str, body: &str) -> Request<Pieces> {
    let body = if body.is_empty() { Pieces::empty() } else { Pieces::sized(body.to_owned()) };
    Request::builder().method(method).uri(url).body(body).unwrap()
}

/// A call to a stub that refuses so many streams: what it came to, and how many streams there were.
async fn refused(onus: &Onus, method: Method, refusals: usize) -> (Option<u16>, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = count.clone();
    let stub = streams(move |mut stream| {
        let number = counts.fetch_add(1, Ordering::Relaxed);
        async move {
            if number < refusals {
                return stream.reset(Reason::REFUSED_STREAM);
            }
            stream.request().await;
            stream.ends(200, &[]);
        }
    })
    .await;
    let call = client(onus, Http2).oneshot(request(method, &stub.url("/"), "17 EUR"));
    let status = call.await.ok().map(|response| response.status().as_u16());
    (status, count.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_where_the_policy_says_so() {
    // [decide-16] S14
    for (policy, method, refusals, expected) in [
        (safe_twice(), Method::GET, 1, (Some(200), 2)),
        (safe_twice(), Method::GET, 2, (None, 2)),
        // The client does not tell a refusal from a lost answer.
        (safe_twice(), Method::POST, 1, (None, 1)),
        (twice(), Method::POST, 1, (Some(200), 2)),
        (twice(), Method::POST, 9, (None, 2)),
    ] {
        let got = refused(&checkout(policy), method.clone(), refusals).await;
        assert_eq!(got, expected, "{method} {refusals}");
    }
}

/// Makes these calls at once: how many have ended with an answer, and how many without.
async fn at_once(client: &Wrapped<Pieces>, requests: Vec<Request<Pieces>>) -> (usize, usize) {
    let mut calls = JoinSet::new();
    for request in requests {
        calls.spawn(client.clone().oneshot(request));
    }
    let ended = calls.join_all().await;
    let answered = ended.iter().filter(|answer| answer.is_ok()).count();
    (answered, ended.len() - answered)
}

#[tokio::test]
async fn calls_that_wait_for_a_stream_that_is_refused_all_end() {
    // S14
    let count = Arc::new(AtomicUsize::new(0));
    let counts = count.clone();
    let mut settings = h2::server::Builder::new();
    settings.max_concurrent_streams(1);
    let stub = streams_with(settings, move |mut stream| {
        counts.fetch_add(1, Ordering::Relaxed);
        async move { stream.reset(Reason::REFUSED_STREAM) }
    })
    .await;
    let onus = checkout(twice());
    let call = |_| request(Method::GET, &stub.url("/"), "");
    let calls = (0..50).map(call).collect();
    assert_eq!(at_once(&client(&onus, Http2), calls).await, (0, 50));
    let streams = count.load(Ordering::Relaxed);
    assert!(streams <= 100, "{streams} for two attempts of each");
    assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", "error")]), 50);
}

/// Thirty charges to a callee that goes away: of the ten that its first connection has brought, it
/// works on five and answers three. How many calls were answered, and which charges were worked on.
async fn going_away(policy: RetryPolicy) -> (usize, Vec<String>) {
    let worked = Arc::new(Mutex::new(Vec::new()));
    let works = worked.clone();
    let stub = frames(10, move |mut peer| {
        let worked = works.clone();
        async move {
            let mut read = Vec::new();
            while read.len() < 10 {
                let Some(charge) = peer.request().await else { return };
                if peer.number > 0 {
                    peer.ok(charge.stream).await;
                    worked.lock().unwrap().push(charge.body);
                } else {
                    read.push(charge);
                }
            }
            peer.goaway(read[4].stream).await;
            for (n, charge) in read.into_iter().take(5).enumerate() {
                worked.lock().unwrap().push(charge.body);
                if n % 2 == 0 {
                    peer.ok(charge.stream).await;
                }
            }
        }
    })
    .await;
    let charge = |n: usize| request(Method::POST, &stub.url("/"), &format!("number {n}"));
    let client = client(&checkout(policy), Http2);
    let (answered, lost) = at_once(&client, (0..30).map(charge).collect()).await;
    assert_eq!(answered + lost, 30, "every call ends");
    let worked = std::mem::take(&mut *worked.lock().unwrap());
    (answered, worked)
}

#[tokio::test]
async fn a_callee_that_is_going_away_works_on_no_charge_twice() {
    // [decide-16] S16
    let (answered, mut worked) = going_away(safe_twice()).await;
    assert_eq!(answered, worked.len() - 2, "two were worked on and not answered");
    worked.sort();
    let all = worked.len();
    worked.dedup();
    assert_eq!(worked.len(), all);
    // Where the operator lets charges be sent again, those two are, and the refused ones.
    let (answered, mut worked) = going_away(twice()).await;
    let all = worked.len();
    worked.sort();
    worked.dedup();
    assert_eq!((answered, worked.len(), all), (30, 30, 32));
}

#[test]
fn calls_that_are_given_up_cost_their_neighbours_nothing() {
    // S21
    paused_sockets(async {
        const LIMIT: Duration = Duration::from_millis(50);
        const CALLS: usize = 300;
        let (come, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (comes, answers) = (come.clone(), answer.clone());
        let stub = streams(move |mut stream| {
            let (come, answer) = (comes.clone(), answers.clone());
            async move {
                let seen = stream.request().await.expect("a request");
                come.fetch_add(1, Ordering::Relaxed);
                if seen.method == Method::GET {
                    stream.gone().await;
                    return;
                }
                answer.notified().await;
                stream.head(200, &[]);
                stream.last("fine");
            }
        })
        .await;
        let once = || RetryPolicy::attempts(1);
        let onus = Onus::builder("checkout").retry("peer", once().per_try_timeout(LIMIT));
        let onus = onus.retry_procedure("peer", "PUT", once()).build().unwrap();
        let client = client(&onus, Http2);
        let neighbour = client.clone().oneshot(request(Method::PUT, &stub.url("/"), "17 EUR"));
        let neighbour = tokio::spawn(neighbour);
        until(|| come.load(Ordering::Relaxed) == 1).await;
        let slow = |_| request(Method::GET, &stub.url("/"), "");
        let slow = at_once(&client, (0..CALLS).map(slow).collect());
        let limit = async {
            until(|| come.load(Ordering::Relaxed) == 1 + CALLS).await;
            pass(LIMIT).await;
        };
        // Each has the layer's own answer.
        assert_eq!(tokio::join!(slow, limit).0, (CALLS, 0));
        answer.notify_one();
        let response = neighbour.await.unwrap().unwrap();
        assert_eq!(read(response.into_body()).await.unwrap(), "fine");
        assert_eq!(stub.connections(), 1);
    });
}
