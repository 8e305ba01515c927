//! The first frame behind the head of a gRPC answer: looked into where the call may be retried.

use std::time::Duration;

use http::{Request, header};
use http_body_util::BodyExt;
use onus::{CallOutcome, Onus, RetryPolicy};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Piece, Pieces, Reply, counted, paused};

const UNAVAILABLE: &[(&str, &str)] = &[("grpc-status", "14"), ("onus-claim", "claimed")];
const SUPPRESSED: &[(&str, &str)] = &[("grpc-status", "14"), ("onus-claim", "unclaimed")];
const FINE: &[(&str, &str)] = &[("grpc-status", "0")];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A head, and then these pieces.
fn streams(pieces: impl IntoIterator<Item = Piece>) -> Reply {
    Reply::ok().header("content-type", "application/grpc").body(pieces)
}

fn trailers(lines: &[(&'static str, &'static str)]) -> Piece {
    Piece::Trailers(lines.to_vec())
}

fn call(body: Pieces) -> Request<Pieces> {
    let request = Request::post("/pkg.Service/Method");
    request.header(header::CONTENT_TYPE, "application/grpc").body(body).unwrap()
}

struct Seen {
    attempts: usize,
    /// The outcome in the extensions of the head.
    stop: Option<&'static str>,
    /// When the head was there.
    head_at: u128,
    data: String,
    /// The status in the trailers; "broken" if the body broke.
    status: String,
    /// Calls that ended ok, with an error, and without an outcome.
    calls: [u64; 3],
}

fn send(policy: RetryPolicy, script: &[Reply], request: Request<Pieces>) -> Seen {
    paused(async move {
        let onus = Onus::builder("checkout").enforce().retry("payments", policy).build().unwrap();
        let callee = Callee::new(script.to_vec());
        let client = onus.outbound("payments").layer(callee.clone());
        let start = Instant::now();
        let response = client.oneshot(request).await.unwrap();
        let head_at = start.elapsed().as_millis();
        let (head, mut body) = response.into_parts();
        let stop = head.extensions.get::<CallOutcome>().map(|outcome| outcome.stop.as_str());
        let (mut data, mut status) = (String::new(), "none".to_owned());
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => match frame.into_data() {
                    Ok(bytes) => data += std::str::from_utf8(&bytes).unwrap(),
                    Err(frame) => {
                        let block = frame.into_trailers().unwrap();
                        assert!(!block.contains_key("onus-claim"), "claims are hidden");
                        status = block["grpc-status"].to_str().unwrap().to_owned();
                    }
                },
                Err(_) => status = "broken".to_owned(),
            }
        }
        drop(body);
        let calls = ["ok", "error", "abandoned"]
            .map(|outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]));
        Seen { attempts: callee.seen().len(), stop, head_at, data, status, calls }
    })
}

fn two() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes().backoff(ms(0), ms(0))
}

#[test]
fn a_status_in_trailers_behind_nothing_is_retried() {
    // [term-5]
    let check = |first: Reply, stop: Option<&str>, attempts: usize, status: &str| {
        let fine = streams([Piece::data("yes"), trailers(FINE)]);
        let seen = send(two(), &[first, fine], call(Pieces::sized("ask")));
        assert_eq!((seen.attempts, seen.stop, &*seen.status), (attempts, stop, status));
        let ok = u64::from(status != "14");
        assert_eq!(seen.calls, [ok, 1 - ok, 0]);
    };
    check(streams([trailers(UNAVAILABLE)]), None, 2, "0");
    check(streams([Piece::Wait(ms(5)), trailers(UNAVAILABLE)]), None, 2, "0");
    check(streams([Piece::Wait(ms(500)), trailers(UNAVAILABLE)]), None, 2, "0");
    check(streams([trailers(SUPPRESSED)]), Some("suppressed"), 1, "14");
    // Cut off: no status at all, or a break, before anything has reached the application.
    check(streams([]), None, 2, "0");
    check(streams([Piece::Break]), None, 2, "0");
    check(streams([trailers(&[("grpc-status", "5")])]), None, 1, "5");
    check(streams([trailers(FINE)]), None, 1, "0");
}

#[test]
fn the_last_attempts_trailers_reach_the_application() {
    let fails = streams([trailers(UNAVAILABLE)]);
    let seen = send(two(), &[fails], call(Pieces::sized("ask")));
    assert_eq!((seen.attempts, seen.stop, &*seen.status), (2, Some("exhausted"), "14"));
    let seen = send(two(), &[streams([Piece::Break])], call(Pieces::sized("ask")));
    assert_eq!((seen.attempts, seen.stop, &*seen.status), (2, Some("exhausted"), "broken"));
}

#[test]
fn a_call_with_a_message_on_its_way_is_committed() {
    let first = streams([Piece::data("part"), trailers(UNAVAILABLE)]);
    let seen = send(two(), &[first], call(Pieces::sized("ask")));
    assert_eq!((seen.attempts, &*seen.data, &*seen.status), (1, "part", "14"));
    assert_eq!(seen.calls, [0, 1, 0], "its failure counts all the same");
    let whole = [Piece::data("a"), Piece::Wait(ms(10)), Piece::data("b"), trailers(FINE)];
    let seen = send(two(), &[streams(whole)], call(Pieces::sized("ask")));
    assert_eq!((seen.attempts, &*seen.data, &*seen.status), (1, "ab", "0"));
    assert_eq!(seen.calls, [1, 0, 0]);
}

#[test]
fn a_slow_stream_is_not_held_back_for_long() {
    let slow = || streams([Piece::Wait(ms(5000)), Piece::data("late"), trailers(FINE)]);
    for (policy, at) in [
        (two(), 1000),
        (two().deadline(ms(300)), 300),
        // The limit of an attempt ends at the head.
        (two().per_try_timeout(ms(100)), 1000),
        // Nothing is looked into where no retry is allowed.
        (RetryPolicy::attempts(1), 0),
    ] {
        let seen = send(policy, &[slow()], call(Pieces::sized("ask")));
        assert_eq!((seen.attempts, seen.head_at), (1, at));
        assert_eq!((&*seen.data, &*seen.status, seen.calls), ("late", "0", [1, 0, 0]));
    }
}

#[test]
fn a_client_that_waits_for_the_head_before_it_goes_on_never_blocks() {
    // The request has not ended: its next message may depend on the head.
    let talk = Pieces::new([Piece::data("hello"), Piece::Hang]);
    let answer = streams([Piece::Wait(ms(5000)), Piece::data("late"), trailers(FINE)]).early();
    let seen = send(two(), &[answer], call(talk));
    assert_eq!((seen.attempts, seen.head_at, &*seen.data), (1, 0, "late"));
}
