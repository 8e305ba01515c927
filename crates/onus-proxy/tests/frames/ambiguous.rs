//! Requests that two readers could understand in two ways.

use crate::cast::{Line, Stub, between, lines, proxy};
use crate::operations::admin::get;

async fn stub() -> Stub {
    lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await
}

/// The status of the answer to these bytes, at both listeners; none where the connection is closed
/// without one. And how many requests came through to the other side.
async fn answered(bytes: &str) -> ([Option<u16>; 2], usize) {
    let stub = stub().await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut statuses = [None; 2];
    for (status, address) in statuses.iter_mut().zip([proxy.inbound(), proxy.outbound()]) {
        let mut line = Line::to(address).await;
        line.say(bytes).await;
        *status = line.head().await.map(|head| head.status());
    }
    (statuses, stub.seen().len())
}

#[tokio::test]
async fn a_request_with_two_meanings_goes_no_further() {
    const OK: [Option<u16>; 2] = [Some(200); 2];
    const BAD: [Option<u16>; 2] = [Some(400); 2];
    for (bytes, statuses, passed) in [
        ("GET / HTTP/1.1\r\nhost: peer\r\n\r\n", OK, 2),
        ("GET / HTTP/1.1\r\nhost: peer\r\nhost: peer\r\n\r\n", BAD, 0),
        ("GET / HTTP/1.1\r\nhost: peer\r\nhost: other\r\n\r\n", BAD, 0),
        ("GET / HTTP/1.1\r\nx: 1\r\n\r\n", BAD, 0),
        (
            "POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
            BAD,
            0,
        ),
        ("POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: +1\r\n\r\na", BAD, 0),
        ("POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: 1,1\r\n\r\na", BAD, 0),
        ("POST / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: gzip\r\n\r\na", BAD, 0),
        (
            "POST / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            BAD,
            0,
        ),
        (
            "POST / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
            BAD,
            0,
        ),
        ("POST / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n", BAD, 0),
        ("GET / HTTP/1.1\r\nhost: peer\r\n folded: 1\r\n\r\n", BAD, 0),
        ("GET /\0 HTTP/1.1\r\nhost: peer\r\n\r\n", BAD, 0),
        ("GET / HTTP/1.1\r\nhost: me:pw@peer\r\n\r\n", BAD, 0),
        ("GET / HTTP/1.1\r\nhost: peer/x\r\n\r\n", BAD, 0),
        ("GET http://me@peer/ HTTP/1.1\r\nhost: peer\r\n\r\n", BAD, 0),
        ("GET / HTTP/1.1\r\nhost: peer\r\nconnection: host\r\n\r\n", OK, 2),
    ] {
        assert_eq!(answered(bytes).await, (statuses, passed), "{bytes:?}");
    }
}

#[tokio::test]
async fn a_length_beside_chunks_is_not_passed_on() {
    let stub = stub().await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    // One reader would take what follows the length for another request.
    line.say(
        "POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n",
    )
    .await;
    line.head().await;
    let seen = stub.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].body, "hello");
    assert_eq!(seen[0].headers.get("content-length"), None);
}

#[tokio::test]
async fn an_authority_in_the_target_counts_and_the_host_follows() {
    let stub = stub().await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET http://peer/x HTTP/1.1\r\nhost: other\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    let seen = &stub.seen()[0];
    assert_eq!(
        (seen.uri.to_string().as_str(), &seen.headers["host"]),
        ("/x", &"peer".parse().unwrap())
    );
}

#[tokio::test]
async fn nothing_that_the_proxy_writes_goes_because_a_client_names_it() {
    let stub = stub().await;
    let address = stub.address;
    let proxy = proxy(&format!(
        "service: checkout\nmode: enforce\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{address}\", \
         forwarding: {{via: true, x-forwarded: true}}}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n"
    ))
    .await;
    let mut line = Line::to(proxy.inbound()).await;
    line.say(
        "GET / HTTP/1.1\r\nhost: peer\r\nx-own: 1\r\nonus-callee: other\r\n\
         connection: host, via, x-forwarded-for, tracestate, x-own\r\n\r\n",
    )
    .await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    let seen = &stub.seen()[0].headers;
    for name in ["host", "via", "x-forwarded-for", "tracestate"] {
        assert!(seen.contains_key(name), "{name} in {seen:?}");
    }
    for name in ["x-own", "connection", "onus-callee"] {
        assert!(!seen.contains_key(name), "{name} in {seen:?}");
    }
}

#[tokio::test]
async fn a_request_without_a_host_gets_that_of_where_it_goes() {
    let stub = stub().await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.inbound()).await;
    line.say("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    assert_eq!(stub.seen()[0].headers["host"], stub.address.to_string());
}

#[tokio::test]
async fn a_body_that_cannot_be_meant_is_the_fault_of_who_sent_it() {
    let stub = stub().await;
    let retry = ", retry: {attempts: 3, unsafe-methods: true, no-budget: true, backoff-base: 1ms}";
    let proxy = between(stub.address, &[stub.address], retry).await;
    for chunks in
        ["-5\r\nhello\r\n", "5\nhello\n0\n\n", "5\r\nhelloXX0\r\n\r\n", "5;\n\r\nhello\r\n"]
    {
        for address in [proxy.inbound(), proxy.outbound()] {
            let mut line = Line::to(address).await;
            let head = "POST / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: chunked\r\n\r\n";
            line.say(format!("{head}{chunks}")).await;
            let answer = line.head().await.unwrap();
            assert_eq!(answer.status(), 400, "{chunks:?}");
            let status = answer.headers["proxy-status"].to_str().unwrap();
            assert!(status.starts_with("onus; error=http_request_error; "), "{status}");
            assert_eq!(answer.headers.get("onus-claim"), None, "{chunks:?}");
        }
    }
    // Who goes away meanwhile has sent nothing wrong.
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say("POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: 9\r\n\r\nhello").await;
        line.half_close().await;
        line.drain().await;
    }
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    for count in [
        "onus_proxy_client_errors_total{listener=\"inbound\",kind=\"malformed\"} 4",
        "onus_proxy_client_errors_total{listener=\"outbound\",kind=\"malformed\"} 4",
        "onus_proxy_broken_total{callee=\"peer\"} 0",
    ] {
        assert!(metrics.contains(count), "{count} in {metrics}");
    }
    assert!(stub.seen().is_empty());
}
