//! The access log while it happens.

use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use super::admin::get;
use crate::cast::{Client, Line, TWICE, between, lines, streams};

/// Follows the log of a proxy.
async fn follow(proxy: &onus_proxy::Proxy, query: &str) -> Follower {
    let client = Client::to(proxy.admin()).await;
    let path = format!("/api/v1/tail{query}");
    let answer = client.send("GET", &path, "", &[]).await.expect("the admin interface answers");
    assert_eq!(answer.status(), 200);
    Follower { answer, text: String::new() }
}

struct Follower {
    answer: Response<Incoming>,
    text: String,
}

impl Follower {
    /// The next line that is no sign of life.
    async fn next(&mut self) -> Value {
        loop {
            while let Some((line, rest)) = self.text.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.text = rest;
                if !line.is_empty() {
                    return serde_json::from_str(&line).expect("a line is JSON");
                }
            }
            let frame = timeout(Duration::from_secs(10), self.answer.frame()).await;
            let frame = frame.expect("in time").expect("it goes on").expect("it is whole");
            let data = frame.into_data().expect("it is data");
            self.text.push_str(std::str::from_utf8(&data).expect("it is text"));
        }
    }
}

const CLAIM: &str = "unclaimed;reason=exhausted;origin=\"db\";hops=2";

#[tokio::test]
async fn each_attempt_is_a_line_with_what_its_answer_says() {
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            let answer =
                format!("HTTP/1.1 503 X\r\nonus-claim: {CLAIM}\r\ncontent-length: 0\r\n\r\n");
            line.say(answer).await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    let mut log = follow(&proxy, "").await;
    let mut only = follow(&proxy, "?edge=peer+POST&status=5xx&retry=closed&origin=db").await;
    let mut client = Line::to(proxy.outbound()).await;
    for method in ["GET", "POST"] {
        client
            .say(format!(
                "{method} /pay?card=1 HTTP/1.1\r\nhost: peer\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
        assert_eq!(client.head().await.unwrap().status(), 503);
    }
    let line = log.next().await;
    for (field, value) in [
        ("service", Value::from("checkout")),
        ("callee", "peer".into()),
        ("instance", stub.address.to_string().into()),
        ("attempt", 1.into()),
        ("method", "GET".into()),
        ("path", "/pay".into()),
        ("status", 503.into()),
        ("retry", "closed".into()),
        ("cause", "dependency".into()),
        ("origin", "db".into()),
        ("hops", 2.into()),
        ("error", "".into()),
    ] {
        assert_eq!(line[field], value, "{field} of {line}");
    }
    assert!(line["at"].as_u64() > Some(1_600_000_000_000), "{line}");
    assert_eq!(only.next().await["method"], "POST", "others are for others");

    // A retry is a line, and so is an attempt that met nobody.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = between(stub.address, &[nobody], &format!(", {TWICE}")).await;
    let mut log = follow(&proxy, "?status=none").await;
    let mut client = Line::to(proxy.outbound()).await;
    client.say("GET /gone HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    assert_eq!(client.head().await.unwrap().status(), 503);
    for attempt in 1..=2 {
        let line = log.next().await;
        let says = [&line["attempt"], &line["status"], &line["retry"], &line["instance"]];
        let instance = Value::from(nobody.to_string());
        assert_eq!(says, [&attempt.into(), &0.into(), &"".into(), &instance], "{line}");
        assert!(line["error"].as_str().unwrap().contains("refused"), "{line}");
    }
}

#[tokio::test]
async fn an_attempt_that_nobody_waits_for_any_more_is_a_line_too() {
    let stub = lines(|mut line| async move {
        line.request().await;
        line.stays().await;
    })
    .await;
    let timed = ", retry: {attempts: 1, per-try-timeout: 50ms}";
    let proxy = between(stub.address, &[stub.address], timed).await;
    let mut log = follow(&proxy, "").await;
    let mut client = Line::to(proxy.outbound()).await;
    client.say(format!("GET /{} HTTP/1.1\r\nhost: peer\r\n\r\n", "a".repeat(40_000))).await;
    assert_eq!(client.head().await.unwrap().status(), 504);
    let line = log.next().await;
    for (field, value) in [
        ("attempt", Value::from(1)),
        ("status", 0.into()),
        ("instance", stub.address.to_string().into()),
        ("error", "nobody waited for the answer any more".into()),
    ] {
        assert_eq!(line[field], value, "{field} of {line}");
    }
    let ms = line["ms"].as_u64().unwrap();
    assert!((50..10_000).contains(&ms), "{ms}");
    // A path as long as a head would fill what is kept for readers.
    assert_eq!(line["path"].as_str().unwrap().len(), 4096);
}

#[tokio::test]
async fn what_grpc_says_in_trailers_is_in_the_line() {
    let stub = streams(|mut stream| async move {
        let seen = stream.request().await.expect("a request");
        stream.head(200, &[("content-type", "application/grpc")]);
        stream.data("\0\0\0\0\0");
        match seen.uri.path() {
            "/a.B/Lost" => stream.reset(h2::Reason::INTERNAL_ERROR),
            "/a.B/Long" => drop(stream.gone().await),
            _ => stream.trailers(&[("grpc-status", "14"), ("onus-claim", CLAIM)]),
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut log = follow(&proxy, "").await;
    let client = Client::to(proxy.outbound()).await;
    let grpc = [("content-type", "application/grpc"), ("te", "trailers")];
    let answer = client.send("POST", "/a.B/C", "", &grpc).await.unwrap();
    assert_eq!(answer.status(), 200);
    let _ = answer.into_body().collect().await;
    let line = log.next().await;
    let says = [&line["status"], &line["grpc_status"], &line["retry"], &line["origin"]];
    assert_eq!(says, [&200.into(), &14.into(), &Value::from("closed"), &"db".into()], "{line}");

    let answer = client.send("POST", "/a.B/Lost", "", &grpc).await.unwrap();
    let _ = answer.into_body().collect().await;
    let line = log.next().await;
    assert_eq!((&line["grpc_status"], &line["path"]), (&Value::Null, &"/a.B/Lost".into()));
    assert!(line["error"].as_str().unwrap().contains("unexpected internal error"), "{line}");

    let answer = client.send("POST", "/a.B/Long", "", &grpc).await.unwrap();
    drop(answer);
    let line = log.next().await;
    assert_eq!(line["error"], "the answer was not read to its end", "{line}");
}

#[tokio::test]
async fn who_does_not_read_is_told_what_is_missing_and_holds_up_nobody() {
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut slow = follow(&proxy, "").await;
    let mut client = Line::to(proxy.outbound()).await;
    // Long paths fill what the connection takes, so that lines wait at the sidecar.
    let path = "x".repeat(8_000);
    const REQUESTS: u64 = 1_500;
    for _ in 0..REQUESTS {
        client.say(format!("GET /{path} HTTP/1.1\r\nhost: peer\r\n\r\n")).await;
        assert_eq!(client.head().await.unwrap().status(), 200);
    }
    let (mut read, mut missed) = (0, 0);
    while read + missed < REQUESTS {
        match slow.next().await["missed"].as_u64() {
            Some(lines) => missed += lines,
            None => read += 1,
        }
    }
    assert!(missed > 0 && read + missed == REQUESTS, "{read} were read and {missed} missed");
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    let counted = format!("onus_proxy_tail_missed_total {missed}\n");
    assert!(metrics.contains(&counted), "{metrics}");
    assert!(metrics.contains("onus_proxy_tail_readers 1.0\n"), "{metrics}");
    drop(slow);
    while !get(proxy.admin(), "/metrics").await.2.contains("onus_proxy_tail_readers 0.0\n") {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn too_many_readers_and_unknown_filters_are_refused() {
    let stub = lines(|line| line.stays()).await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let (status, kind, says) = get(proxy.admin(), "/api/v1/tail?colour=red").await;
    assert_eq!((status, &*kind), (400, "application/problem+json"));
    assert!(says.contains("one of service, edge, status, retry, origin"), "{says}");
    let mut readers = Vec::new();
    for _ in 0..8 {
        readers.push(follow(&proxy, "").await);
    }
    let (status, _, says) = get(proxy.admin(), "/api/v1/tail").await;
    assert_eq!(status, 503);
    assert!(says.contains("8 read the access log already"), "{says}");
}
