//! Clients that ask for too much.

use bytes::Bytes;

use super::admin::get;
use crate::cast::{Client, Line, Stub, lines, proxy};

async fn stub() -> Stub {
    lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await
}

fn limited(app: std::net::SocketAddr, limits: &str) -> String {
    format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"{app}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         limits: {{{limits}}}\n"
    )
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused_and_goes_no_further() {
    let stub = stub().await;
    let proxy = proxy(&limited(stub.address, "headers: 20, header-size: 8KiB")).await;
    let many: String = (0..30).map(|n| format!("x-{n}: 1\r\n")).collect();
    let long = format!("x: {}\r\n", "a".repeat(9 << 10));
    for (more, status) in [(String::new(), 200), (many, 431), (long, 431)] {
        let mut line = Line::to(proxy.inbound()).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: a\r\n{more}\r\n")).await;
        assert_eq!(line.head().await.unwrap().status(), status);
    }
    let client = Client::to(proxy.inbound()).await;
    let long = "a".repeat(9 << 10);
    let answer = client.send("GET", "/", "", &[("x", &long)]).await.unwrap();
    assert_eq!(answer.status(), 431);
    assert_eq!(stub.seen().len(), 1);
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let stub = stub().await;
    let limits = "header-timeout: 50ms, idle-timeout: 200ms";
    let proxy = proxy(&limited(stub.address, limits)).await;
    // Nothing, part of a head, and nothing more after an answer.
    for (bytes, answer) in
        [("", ""), ("GET / HTT", ""), ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", "HTTP/1.1 200")]
    {
        let mut line = Line::to(proxy.inbound()).await;
        line.say(bytes).await;
        let came = line.drain().await;
        assert!(came.starts_with(answer.as_bytes()) && came.is_empty() == answer.is_empty());
    }
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    let slow = "onus_proxy_slow_heads_total{listener=\"inbound\"} 1";
    assert!(metrics.contains(slow), "{metrics}");
}

#[tokio::test]
async fn a_connection_that_stops_in_its_first_bytes_is_cut_off() {
    let stub = stub().await;
    let proxy = proxy(&limited(stub.address, "header-timeout: 100ms, idle-timeout: 1h")).await;
    let mut line = Line::to(proxy.inbound()).await;
    line.say("PR").await;
    assert_eq!(line.drain().await, "");
    // What began like a preface may still be another method.
    let mut line = Line::to(proxy.inbound()).await;
    line.say("P").await;
    line.say("OST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    let slow = "onus_proxy_slow_heads_total{listener=\"inbound\"} 1";
    assert!(metrics.contains(slow), "{metrics}");
}

#[tokio::test]
async fn a_client_that_is_gone_after_its_first_bytes_leaves_nothing() {
    let stub = stub().await;
    let proxy = proxy(&limited(stub.address, "header-timeout: 1h, idle-timeout: 1h")).await;
    let mut line = Line::to(proxy.inbound()).await;
    line.say("PRI").await;
    line.half_close().await;
    assert_eq!(line.drain().await, "", "it is closed long before an hour");
}

#[tokio::test]
async fn a_connection_of_http2_whose_client_is_gone_is_closed() {
    const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let stub = stub().await;
    let limits = "header-timeout: 100ms, idle-timeout: 200ms";
    let proxy = proxy(&limited(stub.address, limits)).await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // The head of a request that does not end, after which only its rest may come.
    let half = [0, 0, 1, 1, 1, 0, 0, 0, 1, 0x82];
    for frames in [&[][..], &settings, &[&settings[..], &half].concat()] {
        let mut line = Line::to(proxy.inbound()).await;
        line.say([PREFACE.as_bytes(), frames].concat()).await;
        // Settings, PING and GOAWAY come, of which this client answers nothing.
        assert!(!line.drain().await.is_empty(), "after {frames:?}");
    }
}

#[tokio::test]
async fn an_answer_may_take_longer_than_an_idle_connection() {
    let stub = lines(|mut line| async move {
        line.request().await;
        line.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await;
        // The connection of the client is quiet for longer than it might be idle.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(300), line.bytes(1)).await;
        line.say("ok").await;
        line.stays().await;
    })
    .await;
    let limits = "header-timeout: 50ms, idle-timeout: 100ms";
    let proxy = proxy(&limited(stub.address, limits)).await;
    let mut line = Line::to(proxy.inbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let head = line.head().await.unwrap();
    assert_eq!(line.body(&head).await.unwrap().0, Bytes::from("ok"));
}

#[tokio::test]
async fn what_is_beyond_the_bounds_is_refused_and_counted() {
    let stub = lines(|mut line| async move {
        line.request().await;
        line.stays().await;
    })
    .await;
    let proxy = proxy(&limited(stub.address, "connections: 2, requests: 1")).await;
    let mut first = Line::to(proxy.inbound()).await;
    first.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    while stub.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut second = Line::to(proxy.inbound()).await;
    second.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let head = second.head().await.unwrap();
    assert_eq!(head.status(), 503);
    assert!(head.headers["proxy-status"].to_str().unwrap().contains("connection_limit_reached"));
    let own = "claimed;reason=own;attempt=1;origin=\"checkout\";hops=0";
    assert_eq!(head.headers["onus-claim"], own);
    let third = Line::to(proxy.inbound()).await;
    assert!(third.drain().await.is_empty(), "it is closed at once");
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    let refused = "onus_proxy_connections_refused_total{listener=\"inbound\"} 1";
    assert!(metrics.contains(refused), "{metrics}");
}
