//! Requests and calls tied together across an application that runs elsewhere.

use http::{HeaderMap, Request, Response};
use onus::{Correlation, Mode, Onus, RetryPolicy};
use tower::{Layer, ServiceExt, service_fn};

use crate::cast::{Callee, Client, Pieces, Reply, counted, get, paused, said};

/// What an application hands on from a request to its calls.
type HandsOn = &'static [&'static str];

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn request() -> Request<Pieces> {
    let mut request = get("/");
    for (name, value) in
        [("traceparent", PARENT), ("tracestate", "other=1"), ("x-request-id", "17")]
    {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

/// Sends so many requests at once through an application that makes one failing call for each in a
/// task without scope. What their claims say, and what the callee saw of `tracestate`.
fn run(onus: &Onus, requests: usize, hands_on: HandsOn) -> (Vec<String>, Vec<String>) {
    paused(async {
        let callee =
            Callee::new([Reply::says("unclaimed").after(std::time::Duration::from_secs(1))]);
        let layer = onus.outbound("b").across(Correlation::default());
        let client: Client = layer.layer(callee.clone());
        let application = service_fn(move |request: Request<Pieces>| {
            let client = client.clone();
            async move {
                let mut call = get("/");
                for &name in hands_on {
                    call.headers_mut().insert(name, request.headers()[name].clone());
                }
                let called = tokio::spawn(client.oneshot(call)).await.unwrap();
                let mut answer = Response::new(Pieces::empty());
                *answer.status_mut() = called.unwrap().status();
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let node = onus.inbound().across(Correlation::default()).layer(application);
        let asked = (0..requests).map(|_| tokio::spawn(node.clone().oneshot(request())));
        let mut claims = Vec::new();
        for asked in asked.collect::<Vec<_>>() {
            claims.push(said(asked.await.unwrap().unwrap().headers()));
        }
        let state = |headers: &HeaderMap| {
            let lines = headers.get_all("tracestate").iter();
            lines.map(|line| line.to_str().unwrap().to_owned()).collect::<Vec<_>>().join("|")
        };
        (claims, callee.seen().iter().map(|seen| state(&seen.headers)).collect())
    })
}

#[test]
fn a_call_is_tied_by_token_else_by_an_id_that_is_certain_else_not_at_all() {
    // [correlate-1] [correlate-2] [correlate-3] [correlate-4] [correlate-5]
    fn check(requests: usize, hands_on: HandsOn, claim: &str, untied: u64, ambiguous: u64) {
        let onus = Onus::builder("a").enforce().build().unwrap();
        let (claims, states) = run(&onus, requests, hands_on);
        assert_eq!(claims, vec![claim; requests], "{hands_on:?}");
        let state = if hands_on.contains(&"tracestate") { "other=1" } else { "" };
        assert_eq!(states, vec![state; requests], "{hands_on:?}");
        let count = |name| counted(&onus, name, &[]);
        assert_eq!(count("onus_untied_calls_total"), untied, "{hands_on:?}");
        assert_eq!(count("onus_ambiguous_calls_total"), ambiguous, "{hands_on:?}");
        assert_eq!(count("onus_correlation_entries"), 0, "{hands_on:?}");
    }
    const TIED: &str = "unclaimed suppressed";
    const LOST: &str = "claimed context-lost";
    check(1, &["tracestate"], TIED, 0, 0);
    check(1, &["traceparent"], TIED, 0, 0);
    check(1, &["x-request-id"], TIED, 0, 0);
    check(1, &[], LOST, 1, 0);
    check(3, &["tracestate", "traceparent"], TIED, 0, 0);
    check(3, &["traceparent"], LOST, 3, 3);
    check(3, &["x-request-id"], LOST, 3, 3);
}

#[test]
fn a_service_that_is_off_leaves_trace_headers_alone() {
    let onus = Onus::builder("a").mode(Mode::Off).build().unwrap();
    let (claims, states) = run(&onus, 1, &["tracestate"]);
    assert_eq!((&*claims[0], &*states[0]), ("nothing", "other=1"));
}

#[test]
fn the_applications_own_repeats_are_attempts_of_one_call() {
    // [attempt-5]
    paused(async {
        let onus =
            Onus::builder("a").retry("b", RetryPolicy::attempts(1)).enforce().build().unwrap();
        let callee = Callee::new([Reply::says("claimed")]);
        let client: Client =
            onus.outbound("b").across(Correlation::default()).layer(callee.clone());
        let application = service_fn(move |request: Request<Pieces>| {
            let client = client.clone();
            async move {
                for _ in 0..2 {
                    let mut call = get("/");
                    let state = request.headers()["tracestate"].clone();
                    call.headers_mut().insert("tracestate", state);
                    tokio::spawn(client.clone().oneshot(call)).await.unwrap().unwrap();
                }
                let mut answer = Response::new(Pieces::empty());
                *answer.status_mut() = http::StatusCode::BAD_GATEWAY;
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let mut node = onus.inbound().across(Correlation::default()).layer(application);
        let answer = node.ready().await.unwrap().clone().oneshot(request()).await.unwrap();
        assert_eq!(said(answer.headers()), "unclaimed not-configured");
        assert_eq!(callee.seen().len(), 2);
    });
}
