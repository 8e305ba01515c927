//! How calls of the application are tied to the requests that it serves.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::cast::{Line, Stub, between, lines};

/// An application that answers with the `tracestate` that it got.
async fn tells() -> Stub {
    lines(|mut line| async move {
        while let Some(seen) = line.request().await {
            let state = seen.headers.get("tracestate").map_or("", |state| state.to_str().unwrap());
            line.say(format!("HTTP/1.1 200 X\r\nx-state: {state}\r\ncontent-length: 0\r\n\r\n"))
                .await;
        }
    })
    .await
}

#[tokio::test]
async fn a_token_finds_room_or_stays_away_and_foreign_entries_are_kept() {
    // S66
    let app = tells().await;
    let proxy = between(app.address, &[app.address], "").await;
    let entries = |count: usize| {
        let entries: Vec<_> = (0..count).map(|number| format!("v{number}=1")).collect();
        entries.join(",")
    };
    for (before, has_token) in
        [(String::new(), true), (entries(31), true), (format!("v={}", "x".repeat(400)), true)]
    {
        let mut line = Line::to(proxy.inbound()).await;
        let state =
            if before.is_empty() { String::new() } else { format!("tracestate: {before}\r\n") };
        line.say(format!("GET / HTTP/1.1\r\nhost: a\r\n{state}\r\n")).await;
        let head = line.head().await.unwrap();
        let after = head.headers["x-state"].to_str().unwrap().to_owned();
        assert_eq!(after.starts_with("onus="), has_token, "{after}");
        assert!(after.ends_with(&before), "{after}");
        // What goes out has the foreign entries, and not the token.
        let mut line = Line::to(proxy.outbound()).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: peer\r\ntracestate: {after}\r\n\r\n")).await;
        let head = line.head().await.unwrap();
        assert_eq!(head.headers["x-state"], before);
    }
    // Too long, or too many: still below the limits, and no request fails for it.
    for before in [entries(32), entries(33), format!("v={}", "x".repeat(510)), "x".repeat(4_096)] {
        let mut line = Line::to(proxy.inbound()).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: a\r\ntracestate: {before}\r\n\r\n")).await;
        assert_eq!(line.head().await.unwrap().status(), 200, "{}", before.len());
    }
}

#[tokio::test]
async fn of_many_requests_with_one_trace_id_only_the_one_that_failed_says_so() {
    // S70
    let callee = lines(|mut line| async move {
        while let Some(seen) = line.request().await {
            let status = if seen.uri.path() == "/7" { "503 X" } else { "200 OK" };
            line.say(format!(
                "HTTP/1.1 {status}\r\nonus-claim: unclaimed\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
        }
    })
    .await;
    let (tell, told) = tokio::sync::watch::channel(None);
    let together = Arc::new(Barrier::new(MANY));
    let app = lines(move |mut line| {
        let (mut told, together) = (told.clone(), together.clone());
        async move {
            let seen = line.request().await.unwrap();
            // All of them are live when the first of them calls.
            together.wait().await;
            let outbound = told.wait_for(Option::is_some).await.unwrap().unwrap();
            let mut call = Line::to(outbound).await;
            let field =
                |name: &str| format!("{name}: {}\r\n", seen.headers[name].to_str().unwrap());
            let fields: String = ["traceparent", "tracestate", "x-request-id"].map(field).concat();
            let path = seen.uri.path();
            call.say(format!("GET {path} HTTP/1.1\r\nhost: peer\r\n{fields}\r\n")).await;
            let status = call.head().await.unwrap().status();
            // One that has no failed call fails by itself.
            let status = if path == "/9" { 500 } else { status };
            line.say(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
        }
    })
    .await;
    let proxy = between(app.address, &[callee.address], "").await;
    tell.send_replace(Some(proxy.outbound()));
    let mut clients = JoinSet::new();
    for number in 0..MANY {
        let inbound = proxy.inbound();
        clients.spawn(async move {
            let mut line = Line::to(inbound).await;
            line.say(format!("GET /{number} HTTP/1.1\r\nhost: a\r\n{SAME}\r\n")).await;
            let head = line.head().await.unwrap();
            let claim = head.headers.get("onus-claim").map_or("", |claim| claim.to_str().unwrap());
            (number, claim.split(';').take(2).collect::<Vec<_>>().join(";"))
        });
    }
    for (number, claim) in clients.join_all().await {
        let expected = match number {
            7 => "unclaimed;reason=suppressed",
            9 => "claimed;reason=own",
            _ => "",
        };
        assert_eq!(claim, expected, "{number}");
    }
}

const MANY: usize = 100;
const SAME: &str = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\
                    x-request-id: same\r\n";
