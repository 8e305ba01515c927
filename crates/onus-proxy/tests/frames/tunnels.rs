//! Connections that stop being HTTP.

use crate::cast::{Line, Stub, TWICE, between, lines};

/// A peer that answers so, and then says back what it reads.
async fn echo(answer: &'static str) -> Stub {
    lines(move |mut line| async move {
        while line.request().await.is_some() {
            line.say(answer).await;
            if !answer.contains(" 101 ") && !answer.contains(" 200 Connected") {
                continue;
            }
            while let Some(byte) = line.bytes(1).await {
                line.say(byte).await;
            }
        }
    })
    .await
}

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                      upgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n";
const ASK: &str = "GET /chat HTTP/1.1\r\nhost: peer\r\nconnection: keep-alive, Upgrade\r\n\
                   upgrade: websocket\r\nsec-websocket-key: y\r\n\r\n";

#[tokio::test]
async fn behind_an_upgrade_bytes_pass_both_ways() {
    // S58
    let stub = echo(SWITCH).await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say(ASK).await;
        let head = line.head().await.unwrap();
        assert_eq!((head.status(), &head.headers["upgrade"]), (101, &"websocket".parse().unwrap()));
        assert_eq!(head.headers["sec-websocket-accept"], "x");
        for word in ["hello", "again"] {
            line.say(word).await;
            assert_eq!(line.bytes(word.len()).await.unwrap(), word);
        }
        line.half_close().await;
        assert_eq!(line.drain().await, "", "the end passes too");
    }
    let asked = stub.seen();
    assert_eq!(asked.len(), 2, "a tunnel is not retried");
    assert!(asked.iter().all(|seen| seen.headers["upgrade"] == "websocket"));
}

#[tokio::test]
async fn an_upgrade_that_is_refused_is_an_answer_and_may_be_retried() {
    let refused = "HTTP/1.1 503 X\r\ncontent-length: 2\r\n\r\nno";
    let stub = echo(refused).await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say(ASK).await;
    let head = line.head().await.unwrap();
    assert_eq!((head.status(), &line.body(&head).await.unwrap().0[..]), (503, &b"no"[..]));
    assert_eq!(stub.seen().len(), 2);
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 503, "the connection goes on");
}

#[tokio::test]
async fn behind_a_connect_bytes_pass_both_ways() {
    let stub = echo("HTTP/1.1 200 Connected\r\n\r\n").await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("CONNECT peer:443 HTTP/1.1\r\nhost: peer:443\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    line.say("hello").await;
    assert_eq!(line.bytes(5).await.unwrap(), "hello");
    assert_eq!(stub.seen()[0].uri, "peer:443");
}
