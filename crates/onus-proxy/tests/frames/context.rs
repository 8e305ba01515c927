//! Which request a call is made for, through an application that hands on what its libraries do.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use tokio::sync::Barrier;

use crate::cast::{Line, Stub, between, lines};

/// An application that calls `peer` for each request and fails with it. Like the libraries of
/// OpenTelemetry, it hands `tracestate` on with a `traceparent` only, and begins a trace of its own
/// where there is none.
async fn app(outbound: Arc<OnceLock<SocketAddr>>, together: Arc<Barrier>) -> Stub {
    lines(move |mut line| {
        let (outbound, together) = (outbound.clone(), together.clone());
        async move {
            while let Some(seen) = line.request().await {
                together.wait().await;
                let mut call = Line::to(*outbound.get().expect("it is known")).await;
                let more = handed_on(&seen.headers);
                call.say(format!("GET / HTTP/1.1\r\nhost: peer\r\n{more}\r\n")).await;
                call.head().await.expect("an answer");
                together.wait().await;
                line.say("HTTP/1.1 502 X\r\ncontent-length: 0\r\n\r\n").await;
            }
        }
    })
    .await
}

fn handed_on(headers: &HeaderMap) -> String {
    let value = |name: &str| headers.get(name).map(|value| value.to_str().expect("it is text"));
    let line = |name: &str| value(name).map(|value| format!("{name}: {value}\r\n"));
    let trace = match line("traceparent") {
        Some(parent) => parent + &line("tracestate").unwrap_or_default(),
        None => "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n".into(),
    };
    trace + &line("x-request-id").unwrap_or_default()
}

/// The reasons of the claims when as many requests with these headers come at once.
async fn reasons(requests: usize, headers: &str) -> Vec<String> {
    let callee = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say(
                "HTTP/1.1 503 X\r\nonus-claim: unclaimed;reason=exhausted\r\n\
                 content-length: 0\r\n\r\n",
            )
            .await;
        }
    })
    .await;
    let outbound = Arc::new(OnceLock::new());
    let app = app(outbound.clone(), Arc::new(Barrier::new(requests))).await;
    let retry = ", retry: {attempts: 2, no-probes: true}";
    let proxy = between(app.address, &[callee.address], retry).await;
    outbound.set(proxy.outbound()).expect("once");
    let mut clients = Vec::new();
    for _ in 0..requests {
        let mut client = Line::to(proxy.inbound()).await;
        client.say(format!("GET / HTTP/1.1\r\nhost: a\r\n{headers}\r\n")).await;
        clients.push(client);
    }
    let mut reasons = Vec::new();
    for mut client in clients {
        let head = client.head().await.expect("an answer");
        let claim = head.headers["onus-claim"].to_str().expect("it is text");
        let reason = claim.split(';').find_map(|part| part.strip_prefix("reason="));
        reasons.push(reason.expect("it has one").to_owned());
    }
    reasons
}

#[tokio::test]
async fn a_call_is_tied_by_whatever_the_application_hands_on() {
    // S70
    let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let id = "x-request-id: 17\r\n";
    for (requests, headers, expected) in [
        (1, trace.to_owned(), "suppressed"),
        // The same trace twice: the token tells them apart.
        (2, trace.to_owned(), "suppressed"),
        // Without a traceparent the token does not come back, and the trace is another one.
        (1, String::new(), "context-lost"),
        (1, id.to_owned(), "suppressed"),
        // Two requests with one id: nobody knows whose call it is.
        (2, id.to_owned(), "context-lost"),
    ] {
        let found = reasons(requests, &headers).await;
        assert_eq!(found, vec![expected; requests], "{requests} with {headers:?}");
    }
}
