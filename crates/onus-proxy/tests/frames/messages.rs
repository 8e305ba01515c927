//! Messages of every shape, from one version of HTTP to the same and to the other.

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt;

use crate::cast::{Client, Line, Stub, between, lines, streams};

/// A peer that speaks HTTP/1.1 and answers all requests so.
async fn answers(answer: &'static str) -> Stub {
    lines(move |mut line| async move {
        while line.request().await.is_some() {
            line.say(answer).await;
        }
    })
    .await
}

#[tokio::test]
async fn an_answer_without_a_body_is_whole_at_its_head() {
    // S13
    for (method, answer, length) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", Some("5")),
        ("GET", "HTTP/1.1 204 X\r\n\r\n", None),
        // It may be said, and hyper's server does not.
        ("GET", "HTTP/1.1 304 X\r\ncontent-length: 5\r\n\r\n", None),
        ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Some("0")),
    ] {
        let stub = answers(answer).await;
        let proxy = between(stub.address, &[stub.address], "").await;
        for address in [proxy.inbound(), proxy.outbound()] {
            let mut line = Line::to(address).await;
            for _ in 0..2 {
                line.say(format!("{method} / HTTP/1.1\r\nhost: peer\r\n\r\n")).await;
                let head = line.head().await.unwrap();
                let says = head.headers.get("content-length").map(|value| value.to_str().unwrap());
                assert_eq!(says, length, "{method} {answer}");
                assert!(!head.is_chunked(), "{method} {answer}");
            }
        }
        assert_eq!(stub.connections(), 2, "each side uses its connection again: {answer}");
    }
}

#[tokio::test]
async fn bodies_and_trailers_pass_in_both_versions() {
    // S03 S06
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                   5\r\nhello\r\n6\r\n again\r\n0\r\nx-sum: 7\r\n\r\n";
    let stub = answers(chunked).await;
    let proxy = between(stub.address, &[stub.address], ", protocol: http1").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say(
        "POST /up HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: chunked\r\ntrailer: x-up\r\n\
         te: trailers\r\nconnection: te\r\n\r\n3\r\nabc\r\n0\r\nx-up: 1\r\n\r\n",
    )
    .await;
    let head = line.head().await.unwrap();
    let (body, trailers) = line.body(&head).await.unwrap();
    assert_eq!((&*body, &trailers["x-sum"]), (&b"hello again"[..], &"7".parse().unwrap()));
    let seen = &stub.seen()[0];
    assert_eq!((&seen.body[..], &seen.trailers["x-up"]), (&b"abc"[..], &"1".parse().unwrap()));

    let client = Client::to(proxy.outbound()).await;
    let answer = client.send("POST", "/up", "abc", &[]).await.unwrap();
    let (head, body) = answer.into_parts();
    assert!(!head.headers.contains_key("transfer-encoding"));
    let body = body.collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-sum"], "7");
    assert_eq!(body.to_bytes(), "hello again");
    let seen = &stub.seen()[1];
    assert_eq!((&seen.body[..], &seen.headers["host"]), (&b"abc"[..], &"peer".parse().unwrap()));
    assert_eq!(seen.headers["content-length"], "3");
}

#[tokio::test]
async fn a_body_of_unknown_length_passes_whatever_the_method() {
    let stub = answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let proxy = between(stub.address, &[stub.address], "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        for method in ["GET", "DELETE", "POST", "QUERY"] {
            let mut line = Line::to(address).await;
            line.say(format!(
                "{method} / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n0\r\n\r\n"
            ))
            .await;
            assert_eq!(line.head().await.unwrap().status(), 200);
            assert_eq!(stub.seen().last().unwrap().body, "hello", "{method}");
        }
    }
}

#[tokio::test]
async fn heads_of_answers_have_the_room_of_heads_of_requests() {
    const LONG: usize = 50 << 10;
    let stub = streams(|mut stream| async move {
        stream.request().await;
        stream.head(200, vec![("x", &*"a".repeat(LONG).leak())].leak());
        stream.trailers(&[]);
    })
    .await;
    let proxy = between(stub.address, &[stub.address], ", protocol: http2").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = line.head().await.unwrap();
    assert_eq!((head.status(), head.headers["x"].len()), (200, LONG));
}

#[tokio::test]
async fn an_answer_with_a_coding_that_stays_is_not_passed_on_without_it() {
    let stub = answers(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    )
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
        let head = line.head().await.unwrap();
        let says = "onus; error=http_protocol_error; \
                    details=\"the answer has a transfer coding beside chunks\"";
        assert_eq!((head.status(), &head.headers["proxy-status"]), (502, &says.parse().unwrap()));
    }
}

#[tokio::test]
async fn cookies_in_several_lines_are_one_line_in_the_old_version() {
    let stub = answers("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let proxy = between(stub.address, &[stub.address], ", protocol: http1").await;
    let client = Client::to(proxy.outbound()).await;
    let cookies = [("cookie", "a=1"), ("x", "1"), ("cookie", "b=2"), ("cookie", "c=3; d=4")];
    assert_eq!(client.send("GET", "/", "", &cookies).await.unwrap().status(), 200);
    let seen = &stub.seen()[0].headers;
    let lines: Vec<_> = seen.get_all("cookie").iter().collect();
    assert_eq!(lines, ["a=1; b=2; c=3; d=4"]);
}

#[tokio::test]
async fn of_a_length_beside_chunks_the_chunks_count() {
    for length in [3, 50] {
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n"
        );
        let stub = answers(answer.leak()).await;
        let proxy = between(stub.address, &[stub.address], "").await;
        for address in [proxy.inbound(), proxy.outbound()] {
            let mut line = Line::to(address).await;
            line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
            let head = line.head().await.unwrap();
            assert_eq!(head.headers.get("content-length"), None);
            assert_eq!(line.body(&head).await.unwrap().0, "hello");
        }
    }
}

#[tokio::test]
async fn a_client_of_the_old_version_reaches_a_callee_of_the_new_one() {
    let stub = streams(|mut stream| async move {
        stream.request().await;
        stream.head(200, &[("x", "1")]);
        stream.data("hello");
        stream.trailers(&[("x-sum", "7")]);
    })
    .await;
    let proxy = between(stub.address, &[stub.address], ", protocol: http2").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("POST /up?q=1 HTTP/1.1\r\nhost: peer\r\ncontent-length: 3\r\n\r\nabc").await;
    let head = line.head().await.unwrap();
    assert!(head.is_chunked());
    let (body, _) = line.body(&head).await.unwrap();
    assert_eq!(body, "hello");
    let seen = &stub.seen()[0];
    assert_eq!(
        (seen.uri.to_string().as_str(), &seen.body[..]),
        ("http://peer/up?q=1", &b"abc"[..])
    );
    assert_eq!(seen.headers.get("host"), None);
}

#[tokio::test]
async fn an_interim_answer_is_not_the_answer() {
    // S12
    let stub = lines(|mut line| async move {
        let Some(head) = line.head().await else { return };
        line.say("HTTP/1.1 100 Continue\r\n\r\n").await;
        line.rest_of(head).await;
        line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        line.stays().await;
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("POST / HTTP/1.1\r\nhost: peer\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
        .await;
    assert_eq!(line.head().await.unwrap().status(), 100, "the client is told to go on, once");
    line.say("abc").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    assert_eq!(stub.seen()[0].body, "abc");
}

#[tokio::test]
async fn a_request_passes_no_more_proxies_than_it_says() {
    let stub = answers("HTTP/1.1 204 X\r\n\r\n").await;
    let proxy = between(stub.address, &[stub.address], "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        for (method, target, number, status, passed) in [
            ("OPTIONS", "*", "0", 200, None),
            ("OPTIONS", "/", "0", 200, None),
            ("TRACE", "/", "0", 405, None),
            ("OPTIONS", "*", "1", 204, Some("0")),
            ("OPTIONS", "/", "9999", 204, Some("9998")),
            ("TRACE", "/", "3", 204, Some("2")),
            // No number, or of no meaning.
            ("OPTIONS", "*", "-1", 204, Some("-1")),
            ("GET", "/", "0", 204, Some("0")),
        ] {
            let before = stub.seen().len();
            let mut line = Line::to(address).await;
            line.say(format!(
                "{method} {target} HTTP/1.1\r\nhost: peer\r\nmax-forwards: {number}\r\n\r\n"
            ))
            .await;
            let head = line.head().await.unwrap();
            assert_eq!(head.status(), status, "{method} {target} {number}");
            let seen = stub.seen();
            let sent = seen[before..].iter().map(|seen| &seen.headers["max-forwards"]);
            assert_eq!(sent.collect::<Vec<_>>(), Vec::from_iter(passed), "{method} {number}");
            assert!(seen[before..].iter().all(|seen| seen.uri == target), "{method} {target}");
        }
    }
}

#[tokio::test]
async fn fields_of_a_connection_stay_on_it_and_all_others_pass() {
    // S60
    let stub = answers(
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nkeep-alive: timeout=5\r\nconnection: x-hop\r\n\
         x-hop: 1\r\nset-cookie: a\r\nx-z: 1\r\nset-cookie: b\r\n\r\n",
    )
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say(
        "GET / HTTP/1.1\r\nhost: peer\r\nconnection: x-own, keep-alive\r\nx-own: 1\r\n\
         x-z: a  \"b\r\nx-empty:\r\n\r\n",
    )
    .await;
    let head = line.head().await.unwrap();
    let all = |headers: &HeaderMap, name: &str| -> Vec<Bytes> {
        headers.get_all(name).iter().map(|value| Bytes::copy_from_slice(value.as_bytes())).collect()
    };
    assert_eq!(all(&head.headers, "set-cookie"), ["a", "b"]);
    for gone in ["x-hop", "keep-alive", "connection"] {
        assert_eq!(head.headers.get(gone), None, "{gone}");
    }
    let seen = &stub.seen()[0].headers;
    assert_eq!((seen.get("x-own"), all(seen, "x-empty")), (None, vec![Bytes::new()]));
    assert_eq!(all(seen, "x-z"), ["a  \"b"]);
}

#[tokio::test]
async fn a_cut_answer_reaches_the_client_cut() {
    // S23
    let stub = lines(|mut line| async move {
        line.request().await;
        line.say("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome").await;
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    assert_eq!(line.drain().await, "some");
    let client = Client::to(proxy.outbound()).await;
    let proxied = client.send("GET", "/", "", &[]).await;
    // The stub speaks HTTP/1.1 only, so this is no answer at all.
    assert_eq!(proxied.unwrap().status(), 502);
}
