//! A proxy that nobody has configured beyond its neighbours, and the numbers of attempts.

use crate::cast::{Client, Line, TWICE, between, lines, streams};

#[tokio::test]
async fn without_a_policy_every_request_is_sent_once() {
    // S57
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    let methods = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH", "CHARGE"];
    for (number, method) in methods.into_iter().enumerate() {
        line.say(format!("{method} / HTTP/1.1\r\nhost: peer\r\ncontent-length: 0\r\n\r\n")).await;
        assert_eq!(line.head().await.unwrap().status(), 503, "{method}");
        assert_eq!(stub.seen().len(), number + 1, "{method}");
    }
}

#[tokio::test]
async fn a_policy_repeats_what_may_be_repeated_and_numbers_it() {
    // S57 S62 S63
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            let number = line.requests();
            line.say(format!(
                "HTTP/1.1 503 X\r\nset-cookie: {number}\r\ncontent-length: 0\r\n\r\n"
            ))
            .await;
        }
    })
    .await;
    let thrice = TWICE.replace("attempts: 2", "attempts: 3");
    let proxy = between(stub.address, &[stub.address], &format!(", {thrice}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = line.head().await.unwrap();
    assert_eq!((head.status(), &head.headers["set-cookie"]), (503, &"3".parse().unwrap()));
    assert_eq!(head.headers.get_all("set-cookie").iter().count(), 1, "of the last attempt only");
    assert_eq!(stub.attempts(), ["-", "2 marked", "3 marked"]);
    line.say("POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: 2\r\n\r\n17").await;
    assert_eq!(line.head().await.unwrap().status(), 503);
    assert_eq!(stub.seen().len(), 4, "a charge is not repeated");
}

/// How a call of gRPC ends whose callee does this on its first stream, and then answers; and how
/// many streams there were.
async fn grpc(first: &'static [(&'static str, &'static str)], message: bool) -> (String, usize) {
    let stub = streams(move |mut stream| async move {
        stream.request().await;
        let is_first = stream.number == 0;
        stream.head(200, &[("content-type", "application/grpc")]);
        if !is_first || message {
            stream.data(&b"\0\0\0\0\x02ok"[..]);
        }
        match (is_first, first) {
            (false, _) => stream.trailers(&[("grpc-status", "0")]),
            (true, []) => stream.last(""),
            (true, lines) => stream.trailers(lines),
        }
    })
    .await;
    let policy = format!(", {}", TWICE.replace("attempts: 2", "attempts: 2, unsafe-methods: true"));
    let proxy = between(stub.address, &[stub.address], &policy).await;
    let client = Client::to(proxy.outbound()).await;
    let kind = [("content-type", "application/grpc"), ("te", "trailers")];
    let answer = client.send("POST", "/a.B/C", "x", &kind).await.unwrap();
    let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
    let trailers = body.trailers();
    let status = trailers.and_then(|trailers| trailers.get("grpc-status"));
    let status = status.map_or("-", |status| status.to_str().unwrap()).to_owned();
    let kept = trailers.is_some_and(|trailers| trailers.contains_key("grpc-status-details-bin"));
    (status + if kept { " with details" } else { "" }, stub.seen().len())
}

#[tokio::test]
async fn a_status_in_trailers_is_retried_before_a_message_and_told_behind_one() {
    // S01 S25 S27 S30
    const FAILS: &[(&str, &str)] = &[("grpc-status", "14"), ("grpc-status-details-bin", "AAE=")];
    for (first, message, expected) in [
        (FAILS, false, ("0", 2)),
        (FAILS, true, ("14 with details", 1)),
        (&[("grpc-status", "3")], false, ("3", 1)),
        (&[], true, ("-", 1)),
    ] {
        let (status, streams) = grpc(first, message).await;
        assert_eq!((&*status, streams), expected, "{first:?} {message}");
    }
}
