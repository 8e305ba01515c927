//! Callees that cannot be reached, and names that are nobody's.

use std::net::SocketAddr;

use http_body_util::BodyExt;

use crate::cast::{Client, Line, between, lines};

/// Where nobody listens.
async fn nowhere() -> SocketAddr {
    lines(|_| async {}).await.address
}

#[tokio::test]
async fn a_callee_that_cannot_be_reached_is_an_error_of_the_proxy() {
    // S59 S77
    let nowhere = nowhere().await;
    let proxy = between(nowhere, &[nowhere], "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
        let head = line.head().await.unwrap();
        assert_eq!(head.status(), 503);
        let status = head.headers["proxy-status"].to_str().unwrap();
        let expected =
            format!("onus; error=connection_refused; details=\"failed to connect to {nowhere}: ");
        assert!(status.starts_with(&expected), "{status}");
    }
    let client = Client::to(proxy.inbound()).await;
    let claim = |headers: &http::HeaderMap| headers.get("onus-claim").cloned();
    let answer = client.send("GET", "/", "", &[]).await.unwrap();
    let own = "claimed;reason=own;attempt=1;origin=\"checkout\";hops=0";
    assert_eq!(claim(answer.headers()).unwrap(), own);
    let answer =
        client.send("POST", "/a.B/C", "x", &[("content-type", "application/grpc")]).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["grpc-status"]),
        (200, &"14".parse().unwrap())
    );
    assert_eq!(claim(answer.headers()).unwrap(), own);
    assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn a_name_that_is_nobodys_is_told_in_the_answer() {
    let nowhere = nowhere().await;
    let proxy = between(nowhere, &[nowhere], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: Elsewhere:80\r\n\r\n").await;
    let head = line.head().await.unwrap();
    assert_eq!(head.status(), 404);
    let says = "onus; error=destination_not_found; \
                details=\"no callee \\\"Elsewhere:80\\\" is configured\"";
    assert_eq!(head.headers["proxy-status"], says);
    let (body, _) = line.body(&head).await.unwrap();
    assert_eq!(body, "onus: no callee \"Elsewhere:80\" is configured\n");

    let client = Client::to(proxy.outbound()).await;
    let grpc = [("content-type", "application/grpc"), ("onus-callee", "ledger")];
    let answer = client.send("POST", "/a.B/C", "x", &grpc).await.unwrap();
    assert_eq!(answer.headers()["grpc-status"], "12");
    assert_eq!(answer.headers()["grpc-message"], "no callee \"ledger\" is configured");
}

#[tokio::test]
async fn a_long_name_is_told_by_its_beginning() {
    let nowhere = nowhere().await;
    let proxy = between(nowhere, &[nowhere], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say(format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", "a".repeat(60_000))).await;
    let head = line.head().await.unwrap();
    let status = head.headers["proxy-status"].to_str().unwrap();
    assert!((200..400).contains(&status.len()), "{} bytes", status.len());
    assert!(line.body(&head).await.unwrap().0.len() < 400);
}

#[tokio::test]
async fn a_callee_of_another_version_is_told_without_words_of_a_library() {
    let stub = lines(|mut line| async move {
        line.say("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let proxy = between(stub.address, &[stub.address], ", protocol: http2").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = line.head().await.unwrap();
    let address = stub.address;
    let says = format!(
        "onus; error=connection_terminated; \
         details=\"failed to get an answer from {address}: the connection ended\""
    );
    assert_eq!((head.status(), &head.headers["proxy-status"]), (502, &says.parse().unwrap()));
}

#[tokio::test]
async fn a_callee_is_found_by_every_name_that_it_has() {
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let own = ", hosts: [peer.shop.svc], listen: \"127.0.0.1:0\"";
    let proxy = between(stub.address, &[stub.address], own).await;
    let address = stub.address.to_string();
    for (host, more, status) in [
        ("peer", "", 200),
        ("PEER:80", "", 200),
        ("peer.shop.svc:8080", "", 200),
        (&*address, "", 200),
        ("other", "", 404),
        ("other", "onus-callee: peer\r\n", 200),
        ("peer", "onus-callee: other\r\n", 404),
    ] {
        let mut line = Line::to(proxy.outbound()).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: {host}\r\n{more}\r\n")).await;
        assert_eq!(line.head().await.unwrap().status(), status, "{host} {more}");
    }
    let (_, own) = proxy.callees()[0];
    let mut line = Line::to(own).await;
    line.say("GET / HTTP/1.1\r\nhost: any.thing\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    assert!(stub.seen().iter().all(|seen| !seen.headers.contains_key("onus-callee")));
    assert_eq!(stub.seen().last().unwrap().headers["host"], "any.thing");
}
