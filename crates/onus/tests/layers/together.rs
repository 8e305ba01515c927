//! Many calls at once: what they share, and what none may take from another.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use onus::replay::ReplayBody;
use onus::{Mode, Onus, RetryPolicy};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, ServiceExt, service_fn};

use crate::cast::{Callee, Pieces, Reply, ask, counted, get, paused, said, serve};

const SECOND: Duration = Duration::from_secs(1);

fn two() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes()
}

#[test]
fn retries_are_paid_for_before_they_wait() {
    // [budget-4] S42
    let sent = paused(async {
        let policy = RetryPolicy::articles(2).budget_percent(20).backoff(SECOND, SECOND);
        let onus = Onus::builder("checkout").retry("b", policy).build().unwrap();
        let callee = Callee::new([Reply::says("claimed").after(SECOND / 10)]);
        let mut calls = JoinSet::new();
        for _ in 0..1000 {
            calls.spawn(onus.outbound("b").layer(callee.clone()).oneshot(get("/")));
        }
        calls.join_all().await;
        callee.seen().len()
    });
    // A fifth of the calls, and the one of the floor.
    assert_eq!(sent, 1000 + 200 + 1);
}

#[test]
fn a_wait_for_a_retry_holds_no_permit_of_a_limit_below() {
    // S54
    for (below, around, free_at) in [(1, 9, 0), (9, 1, 5)] {
        let waited = paused(async {
            let onus = Onus::builder("checkout").retry("b", two()).build().unwrap();
            let asks = Reply::says("claimed").header("retry-after", "5");
            let callee = ConcurrencyLimit::new(Callee::new([asks, Reply::ok()]), below);
            let client = ConcurrencyLimit::new(onus.outbound("b").layer(callee), around);
            let first = tokio::spawn(client.clone().oneshot(get("/first")));
            tokio::task::yield_now().await;
            let start = Instant::now();
            client.oneshot(get("/second")).await.unwrap();
            let waited = start.elapsed();
            assert_eq!(first.await.unwrap().unwrap().status(), 200);
            waited
        });
        assert_eq!(waited, free_at * SECOND, "{below} below, {around} around");
    }
}

#[test]
fn requests_with_the_same_ids_answer_for_their_own_calls() {
    // [correlate-1] S70
    let claims = paused(async {
        let onus = Onus::builder("checkout").enforce().retry("b", two()).build().unwrap();
        let callee = service_fn(|request: Request<ReplayBody<Pieces>>| async move {
            // All are under way at once.
            tokio::time::sleep(SECOND).await;
            let status = if request.uri().path() == "/42" { 503 } else { 200 };
            let claim = ("onus-claim", "claimed;reason=own");
            let answer = Response::builder().status(status).header(claim.0, claim.1);
            Ok::<_, Infallible>(answer.body(Pieces::empty()).unwrap())
        });
        let client = onus.outbound("b").layer(callee);
        let node = serve(&onus, move |request| {
            let client = client.clone();
            async move {
                let own = request.uri().path() == "/7";
                let status = client.oneshot(request).await.unwrap().status();
                let status = if own { http::StatusCode::INTERNAL_SERVER_ERROR } else { status };
                Response::builder().status(status).body(Pieces::empty()).unwrap()
            }
        });
        let node = Arc::new(tokio::sync::Mutex::new(node));
        let mut requests = JoinSet::new();
        for n in 0..100 {
            let mut request = get(&format!("/{n}"));
            for (name, value) in [
                ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
                ("x-request-id", "the-same"),
            ] {
                request.headers_mut().insert(name, http::HeaderValue::from_static(value));
            }
            let node = node.clone();
            requests.spawn(async move {
                let answer = tower::Service::call(&mut *node.lock().await, request);
                let Ok(answer) = answer.await;
                (n, answer.status().as_u16(), said(answer.headers()))
            });
        }
        requests.join_all().await
    });
    for (n, status, claim) in claims {
        let expected = match n {
            7 => (500, "claimed own"),
            42 => (503, "unclaimed exhausted"),
            _ => (200, "nothing"),
        };
        assert_eq!((status, &*claim), expected, "{n}");
    }
}

/// A hundred calls to ten instances in turn, of which one always answers with this claim: how many
/// succeed, and the service's counters.
fn sick_instance(mode: Mode, claim: &'static str) -> (usize, Onus) {
    paused(async {
        let onus = Onus::builder("checkout").mode(mode).retry("b", two()).build().unwrap();
        let next = Arc::new(AtomicUsize::new(0));
        let instances = service_fn(move |_: Request<ReplayBody<Pieces>>| {
            let sick = next.fetch_add(1, Ordering::Relaxed) % 10 == 9;
            async move {
                let status = if sick { 503 } else { 200 };
                let answer = Response::builder().status(status);
                let answer = if sick { answer.header("onus-claim", claim) } else { answer };
                Ok::<_, Infallible>(answer.body(Pieces::empty()).unwrap())
            }
        });
        let client = onus.outbound("b").layer(instances);
        let mut node = serve(&onus, move |request| {
            let client = client.clone();
            async move {
                let status = client.oneshot(request).await.unwrap().status();
                Response::builder().status(status).body(Pieces::empty()).unwrap()
            }
        });
        let mut fine = 0;
        for _ in 0..100 {
            fine += usize::from(ask(&mut node, get("/")).await.status() == 200);
        }
        (fine, onus)
    })
}

#[test]
fn a_sick_instance_is_retried_elsewhere_and_what_that_costs_is_counted() {
    // [decide-1] S73
    for mode in [Mode::Off, Mode::Observe, Mode::ENFORCE] {
        assert_eq!(sick_instance(mode, "claimed;reason=own").0, 100, "{mode:?}");
    }
    // Whoever is below the sick instance has used the retry up.
    let (fine, onus) = sick_instance(Mode::ENFORCE, "unclaimed;reason=exhausted");
    assert_eq!(fine, 90);
    let suppressed = [("reason", "suppressed")];
    assert_eq!(counted(&onus, "onus_retries_not_made_total", &suppressed), 10);
    // Before anything is suppressed, observing says what it would cost.
    let (fine, onus) = sick_instance(Mode::Observe, "unclaimed;reason=exhausted");
    let healed = [("verdict", "succeeded"), ("cause", "unclaimed")];
    assert_eq!((fine, counted(&onus, "onus_retries_total", &healed)), (100, 11));
}
