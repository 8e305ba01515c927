//! Callers that go away, at every step of a call: its attempts end with them, and nothing is
//! learnt or left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use onus::{Onus, RetryPolicy};

use super::line::{Line, lines};
use super::notes::Stub;
use super::relay::{Speaks, Speaks::Http1, Speaks::Http2, plain, relay};
use crate::cast::{Piece, Pieces, all_series, counted, pass, paused_sockets, until};

const FAILS: &str = "HTTP/1.1 503 Busy\r\nonus-claim: claimed\r\ncontent-length: 0\r\n\r\n";
const WAITS: &str =
    "HTTP/1.1 503 Busy\r\nonus-claim: claimed\r\nretry-after: 9\r\ncontent-length: 0\r\n\r\n";

/// Where a call is when its caller goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Sending,
    Asked,
    Interim,
    Answering,
    Waiting,
    Second,
}

impl Step {
    /// Plays the callee up to this step, and tells `reached` of it.
    async fn play(self, line: &mut Line, reached: &AtomicUsize) {
        if self == Self::Sending {
            line.head().await;
            line.bytes(4).await;
        } else {
            line.request().await;
        }
        match self {
            Self::Sending | Self::Asked => {}
            Self::Interim => line.say("HTTP/1.1 100 Continue\r\n\r\n").await,
            Self::Answering => {
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart").await;
            }
            Self::Waiting => line.say(WAITS).await,
            Self::Second => {
                line.say(FAILS).await;
                line.request().await;
            }
        }
        reached.fetch_add(1, Ordering::Relaxed);
    }
}

fn balance(onus: &Onus) -> f64 {
    let mut series = all_series(onus).into_iter();
    series.find(|series| series.family == "onus_budget_balance").map_or(1.0, |series| series.value)
}

/// A service whose caller goes away at `step`. Waits until the callee has noticed, and for all that
/// might come after it.
async fn go_away(speaks: Speaks, step: Step) -> (Onus, Stub) {
    let (reached, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (reaches, leaves) = (reached.clone(), left.clone());
    let stub = lines(move |mut line| {
        let (reached, left) = (reaches.clone(), leaves.clone());
        async move {
            step.play(&mut line, &reached).await;
            line.gone().await;
            left.fetch_add(1, Ordering::Relaxed);
        }
    })
    .await;
    let policy = RetryPolicy::attempts(2).backoff(Duration::ZERO, Duration::ZERO);
    let policy = policy.unsafe_methods().no_probes();
    let onus = Onus::builder("checkout").enforce().retry("peer", policy).build().unwrap();
    let service = relay(&onus, speaks, Http1, stub.address).await;
    let ends = if step == Step::Sending { Piece::Hang } else { Piece::data("") };
    let body = Pieces::new([Piece::data("data"), ends]);
    let request = Request::put(format!("http://{service}/")).body(body).unwrap();
    let client = plain(speaks);
    let caller = tokio::spawn(async move {
        let mut body = client.request(request).await.unwrap().into_body();
        body.frame().await.unwrap().unwrap();
        std::future::pending::<()>().await;
    });
    until(|| reached.load(Ordering::Relaxed) == 1).await;
    match step {
        // The retry is decided on. Its wait holds no connection that could notice the end.
        Step::Waiting => until(|| balance(&onus) < 1.0).await,
        Step::Sending | Step::Asked | Step::Interim | Step::Answering | Step::Second => {}
    }
    caller.abort();
    until(|| counted(&onus, "onus_requests_total", &[]) == 1).await;
    if step != Step::Waiting {
        until(|| left.load(Ordering::Relaxed) == 1).await;
    }
    pass(Duration::from_secs(3600)).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(onus.replay_limits().in_use(), 0);
    assert_eq!(counted(&onus, "onus_requests_total", &[]), 1, "{speaks:?} {step:?}");
    assert_eq!(counted(&onus, "onus_calls_total", &[]), 1, "{speaks:?} {step:?}");
    (onus, stub)
}

/// `call`: how the call has ended then.
fn check(speaks: Speaks, step: Step, attempts: usize, call: &str) {
    paused_sockets(async {
        let (onus, stub) = go_away(speaks, step).await;
        assert_eq!((stub.connections(), stub.attempts().len()), (1, attempts));
        assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", call)]), 1);
        assert_eq!(counted(&onus, "onus_requests_total", &[("outcome", "cancelled")]), 1);
        assert_eq!(counted(&onus, "onus_edge_requests_total", &[]), 0, "it teaches nothing");
        assert_eq!(counted(&onus, "onus_claims_total", &[]), 0);
    });
}

#[test]
fn a_caller_that_goes_away_takes_its_call_with_it() {
    // [deadline-4] [drop-4] S49 S56
    for speaks in [Http1, Http2] {
        check(speaks, Step::Asked, 1, "abandoned");
        check(speaks, Step::Interim, 1, "abandoned");
        // The callee has answered; that nobody wants the rest is not its failure.
        check(speaks, Step::Answering, 1, "ok");
        check(speaks, Step::Waiting, 1, "abandoned");
        check(speaks, Step::Second, 2, "abandoned");
    }
}

#[test]
fn an_upload_that_its_caller_breaks_off_is_not_sent_again() {
    // [decide-7] [drop-6] S49 S56
    for speaks in [Http1, Http2] {
        paused_sockets(async {
            let (onus, stub) = go_away(speaks, Step::Sending).await;
            assert_eq!((stub.connections(), stub.attempts().len()), (1, 0));
            // Whoever notices first that the caller has gone, the callee has not failed.
            assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", "abandoned")]), 1);
            assert_eq!(counted(&onus, "onus_edge_requests_total", &[]), 0, "it teaches nothing");
        });
    }
}

#[tokio::test]
async fn a_caller_that_leaves_after_the_answer_has_had_it() {
    // S56
    for speaks in [Http1, Http2] {
        let stub = lines(|mut line| async move {
            while line.request().await.is_some() {
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine").await;
            }
        })
        .await;
        let onus = Onus::builder("checkout").build().unwrap();
        let service = relay(&onus, speaks, Http1, stub.address).await;
        for served in 1..=3 {
            let caller = plain(speaks);
            let request = Request::get(format!("http://{service}/")).body(Pieces::empty()).unwrap();
            let all = caller.request(request).await.unwrap().into_body().collect().await.unwrap();
            assert_eq!(all.to_bytes(), "fine");
            drop(caller);
            until(|| counted(&onus, "onus_requests_total", &[("outcome", "ok")]) == served).await;
        }
        assert_eq!(counted(&onus, "onus_requests_total", &[]), 3);
        assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", "ok")]), 3);
    }
}
