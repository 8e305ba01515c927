//! The time that a caller allows: accepted, handed on, and kept.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, header};
use onus::{Onus, RetryPolicy};
use tokio::time::Instant;
use tower::Layer;

use crate::cast::{Callee, Pieces, Reply, ask, get, paused, post, relay, said, serve};

const ENVOY: &str = "x-envoy-expected-rq-timeout-ms";
const GRPC: &str = "grpc-timeout";

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn grpc(mut request: Request<Pieces>) -> Request<Pieces> {
    let value = HeaderValue::from_static("application/grpc");
    request.headers_mut().insert(header::CONTENT_TYPE, value);
    request
}

struct Served {
    head: http::response::Parts,
    /// The time that each attempt said it has.
    allowed: Vec<Option<String>>,
    at: u128,
}

/// Serves `request` by one call to a callee with this script.
fn serve_by_calling(
    policy: RetryPolicy,
    script: &[Reply],
    request: Request<Pieces>,
    call: fn() -> Request<Pieces>,
) -> Served {
    paused(async move {
        let onus = Onus::builder("b").enforce().retry("c", policy).build().unwrap();
        let callee = Callee::new(script.to_vec());
        let client = onus.outbound("c").layer(callee.clone());
        let mut node = serve(&onus, move |_| relay(client.clone(), call()));
        let start = Instant::now();
        let (head, _) = ask(&mut node, request).await.into_parts();
        let at = start.elapsed().as_millis();
        let text = |headers: &HeaderMap| {
            let value = headers.get(ENVOY).or_else(|| headers.get(GRPC))?;
            Some(value.to_str().unwrap().to_owned())
        };
        let allowed = callee.seen().iter().map(|seen| text(&seen.headers)).collect();
        Served { head, allowed, at }
    })
}

fn with(mut request: Request<Pieces>, name: &'static str, value: &'static str) -> Request<Pieces> {
    request.headers_mut().insert(name, HeaderValue::from_static(value));
    request
}

fn call() -> Request<Pieces> {
    get("/c")
}

fn grpc_call() -> Request<Pieces> {
    grpc(post("/pkg.C/Call", Pieces::empty()))
}

fn once() -> RetryPolicy {
    RetryPolicy::attempts(1)
}

#[test]
fn attempts_say_what_is_left_of_the_callers_time() {
    // [deadline-1] [deadline-2] [deadline-3] [deadline-7]
    let check = |policy, request, call, expected: &[Option<&str>]| {
        let script = [Reply::says("claimed").after(ms(100)), Reply::ok()];
        let allowed = serve_by_calling(policy, &script, request, call).allowed;
        let expected: Vec<_> = expected.iter().map(|text| text.map(str::to_owned)).collect();
        assert_eq!(allowed, expected);
    };
    let twice = || RetryPolicy::attempts(2).no_budget().backoff(ms(0), ms(0));

    check(once(), get("/"), call, &[None]);
    check(once(), with(get("/"), ENVOY, "1000"), call, &[Some("950")]);
    check(twice(), with(get("/"), ENVOY, "1000"), call, &[Some("950"), Some("855")]);
    check(once(), with(get("/"), GRPC, "1S"), call, &[Some("950")]);
    check(once(), with(with(get("/"), GRPC, "1S"), ENVOY, "500"), call, &[Some("475")]);
    check(once(), with(get("/"), ENVOY, "1000"), grpc_call, &[Some("950000u")]);
    check(once(), with(get("/"), ENVOY, "2"), call, &[Some("1")]);
    // The attempt's own limit, where it is shorter.
    let limited = || twice().per_try_timeout(ms(200));
    check(limited(), with(get("/"), ENVOY, "1000"), call, &[Some("190"), Some("190")]);
    check(once().deadline(ms(400)), get("/"), call, &[Some("380")]);
    // What the application allows itself.
    check(once(), get("/"), || with(call(), ENVOY, "600"), &[Some("570")]);
    check(once(), with(get("/"), ENVOY, "100"), || with(call(), ENVOY, "600"), &[Some("95")]);
}

#[test]
fn no_retry_starts_when_the_callers_time_is_nearly_over() {
    // [decide-9]
    let policy = RetryPolicy::attempts(2).no_budget().backoff(ms(0), ms(0));
    for (allowed, attempts) in [("109", 1), ("111", 2)] {
        let script = [Reply::says("claimed").after(ms(100)), Reply::ok()];
        let request = with(get("/"), ENVOY, allowed);
        let served = serve_by_calling(policy.clone(), &script, request, call);
        assert_eq!(served.allowed.len(), attempts, "{allowed} ms");
    }
}

#[test]
fn a_service_answers_with_a_claim_before_its_caller_gives_up() {
    // [deadline-5] [claim-12]
    let check = |request, status, grpc_status: Option<&str>| {
        let (head, at) = paused(async {
            let onus = Onus::builder("b").enforce().build().unwrap();
            // A handler that waits for something no layer sees.
            let mut node = serve(&onus, |_| std::future::pending());
            let start = Instant::now();
            let (head, _) = ask(&mut node, request).await.into_parts();
            (head, start.elapsed())
        });
        assert_eq!((head.status.as_u16(), at), (status, ms(300)));
        let header = |name| head.headers.get(name).map(|v| v.to_str().unwrap());
        assert_eq!(header("grpc-status"), grpc_status);
        assert_eq!(header("proxy-status"), Some("onus; error=http_response_timeout"));
        assert_eq!(said(&head.headers), "claimed own");
    };
    check(with(get("/"), ENVOY, "300"), 504, None);
    check(with(grpc_call(), GRPC, "300m"), 200, Some("4"));
}

#[test]
fn a_call_that_hangs_until_the_callers_time_is_over_is_blamed() {
    let request = with(get("/"), ENVOY, "300");
    let served = serve_by_calling(once(), &[Reply::hangs()], request, call);
    assert_eq!((served.head.status.as_u16(), served.at), (504, 300));
    assert_eq!(said(&served.head.headers), "claimed silent handoff");
}

#[test]
fn a_call_without_time_is_not_made() {
    // [deadline-1]
    let request = with(get("/"), GRPC, "0n");
    let served = serve_by_calling(once(), &[Reply::ok()], request, call);
    assert_eq!((served.head.status.as_u16(), served.allowed.len(), served.at), (504, 0, 0));
}

#[test]
fn nobody_notices_an_observing_service_by_its_time() {
    // [mode-10]
    let (head, allowed, at) = paused(async {
        let policy = RetryPolicy::attempts(1).deadline(ms(400));
        let onus = Onus::builder("b").retry("c", policy).build().unwrap();
        let callee = Callee::new([Reply::hangs()]);
        let client = onus.outbound("c").layer(callee.clone());
        let mut node = serve(&onus, move |_| relay(client.clone(), call()));
        let start = Instant::now();
        let (head, _) = ask(&mut node, with(get("/"), ENVOY, "300")).await.into_parts();
        let seen = callee.seen();
        (head, seen[0].headers.get(ENVOY).cloned(), start.elapsed())
    });
    // The limit that was configured holds, and nothing else does.
    assert_eq!((head.status.as_u16(), at), (504, ms(400)));
    assert_eq!(allowed, None);
    assert_eq!(head.headers.get("proxy-status"), None);
}
