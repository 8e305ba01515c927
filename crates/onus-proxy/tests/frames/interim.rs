//! Interim answers (1xx) on their way to the client.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::cast::{Client, Line, Stub, TWICE, between, chained, lines, proxy};
use crate::operations::admin::get;

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n";
const WORKS: &str = "HTTP/1.1 102 Processing\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const GET: &str = "GET / HTTP/1.1\r\nhost: peer\r\n\r\n";

/// A peer that says these to each request, one after the other, each in a packet of its own.
async fn says(parts: &'static [&'static str]) -> Stub {
    lines(move |mut line| async move {
        while line.request().await.is_some() {
            for part in parts {
                line.say(part).await;
            }
        }
    })
    .await
}

/// What comes before anything else has to happen.
async fn soon<T>(comes: impl Future<Output = Option<T>>) -> T {
    let came = timeout(Duration::from_secs(10), comes).await;
    came.expect("it comes by itself").expect("the connection stays")
}

/// The statuses that come for a request, up to the last, whose body is read too.
async fn statuses(line: &mut Line, request: &str) -> Vec<u16> {
    line.say(request).await;
    let mut statuses = Vec::new();
    loop {
        let head = line.head().await.expect("an answer");
        statuses.push(head.status());
        if head.status() >= 200 {
            if !request.starts_with("HEAD") {
                line.body(&head).await.expect("a body");
            }
            return statuses;
        }
        assert!(head.headers.get("content-length").is_none(), "{head:?}");
    }
}

#[tokio::test]
async fn an_interim_answer_passes_before_the_answer_is_made() {
    let heard = Arc::new(Notify::new());
    let waits = heard.clone();
    let stub = lines(move |mut line| {
        let waits = waits.clone();
        async move {
            while line.request().await.is_some() {
                line.say(HINTS).await;
                waits.notified().await;
                line.say(OK).await;
            }
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        for _ in 0..2 {
            line.say(GET).await;
            let hints = soon(line.head()).await;
            assert_eq!(hints.first, "HTTP/1.1 103 Early Hints");
            assert_eq!(hints.lines, ["link: </a.css>"]);
            heard.notify_one();
            let head = line.head().await.unwrap();
            assert_eq!((head.status(), head.headers.get("link")), (200, None));
            assert_eq!(line.body(&head).await.unwrap().0, "ok");
        }
    }
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    for listener in ["inbound", "outbound"] {
        for (result, count) in [("passed", 2), ("dropped", 0)] {
            let labels = format!("{{listener=\"{listener}\",result=\"{result}\"}}");
            let counted = format!("onus_proxy_interim_answers_total{labels} {count}\n");
            assert!(metrics.contains(&counted), "{counted} {metrics}");
        }
    }
}

#[tokio::test]
async fn interim_answers_pass_in_their_order_however_they_come() {
    // S12
    const BOTH: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n\
                        HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    const ALL: &str = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n\
                       HTTP/1.1 104 \r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    for (parts, expected) in [
        (&[BOTH][..], &[103, 200][..]),
        (&[HINTS, OK], &[103, 200]),
        (&[HINTS, WORKS, HINTS, OK], &[103, 102, 103, 200]),
        (&[ALL], &[102, 103, 104, 200]),
        (&["HTTP/1.1 100 Continue\r\n\r\n", OK], &[200]),
        (&[HINTS, "HTTP/1.1 204 X\r\n\r\n"], &[103, 204]),
        (&[HINTS, "HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n"], &[103, 500]),
    ] {
        let stub = says(parts).await;
        let proxy = between(stub.address, &[stub.address], "").await;
        for address in [proxy.inbound(), proxy.outbound()] {
            let mut line = Line::to(address).await;
            for _ in 0..3 {
                assert_eq!(statuses(&mut line, GET).await, expected);
            }
        }
    }
}

#[tokio::test]
async fn interim_answers_to_a_head_request_pass() {
    let stub = says(&[HINTS, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"]).await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.inbound()).await;
    for _ in 0..2 {
        assert_eq!(statuses(&mut line, &GET.replace("GET", "HEAD")).await, [103, 200]);
    }
}

#[tokio::test]
async fn a_client_is_told_once_to_go_on() {
    let stub = lines(|mut line| async move {
        while let Some(head) = line.head().await {
            line.say("HTTP/1.1 100 Continue\r\n\r\n").await;
            line.say(HINTS).await;
            line.rest_of(head).await;
            line.say(WORKS).await;
            line.say(OK).await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        for _ in 0..2 {
            line.say(
                "POST / HTTP/1.1\r\nhost: peer\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n",
            )
            .await;
            let first = [soon(line.head()).await.status(), soon(line.head()).await.status()];
            assert!(matches!(first, [100, 103] | [103, 100]), "{first:?}");
            assert_eq!(statuses(&mut line, "abc").await, [102, 200]);
        }
    }
}

#[tokio::test]
async fn interim_answers_of_every_attempt_pass() {
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            let is_first = line.requests() == 1;
            line.say(if is_first { HINTS } else { WORKS }).await;
            let failed = "HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n";
            line.say(if is_first { failed } else { OK }).await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    assert_eq!(statuses(&mut line, GET).await, [103, 102, 200]);
    assert_eq!(statuses(&mut line, GET).await, [102, 200]);
    assert_eq!(stub.seen().len(), 3);
}

#[tokio::test]
async fn interim_answers_pass_two_sidecars() {
    let stub = says(&[HINTS, WORKS, OK]).await;
    let callee = proxy(&chained("b", stub.address, None)).await;
    let caller = proxy(&chained("a", stub.address, Some(("peer", callee.inbound())))).await;
    let mut line = Line::to(caller.outbound()).await;
    for _ in 0..3 {
        assert_eq!(statuses(&mut line, GET).await, [103, 102, 200]);
    }
}

#[tokio::test]
async fn each_interim_answer_is_of_its_own_request() {
    // The answer to the first is more than all buffers take, and its client reads late.
    const LARGE: usize = 8 << 20;
    let stub = lines(|mut line| async move {
        while let Some(seen) = line.request().await {
            if seen.uri.path() == "/large" {
                line.say(HINTS).await;
                line.say(format!("HTTP/1.1 200 OK\r\ncontent-length: {LARGE}\r\n\r\n")).await;
                line.say(vec![b'a'; LARGE]).await;
            } else {
                line.say(WORKS).await;
                line.say(OK).await;
            }
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        let large = GET.replace("/ ", "/large ");
        line.say(format!("{large}{GET}{large}{GET}")).await;
        for _ in 0..2 {
            assert_eq!(line.head().await.unwrap().status(), 103);
            let head = line.head().await.unwrap();
            assert_eq!(head.status(), 200);
            let (body, _) = line.body(&head).await.unwrap();
            assert!(body.len() == LARGE && body.iter().all(|&byte| byte == b'a'));
            assert_eq!(statuses(&mut line, "").await, [102, 200]);
        }
    }
}

#[tokio::test]
async fn an_attempt_that_was_given_up_is_not_heard_any_more() {
    let (late, said) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (waits, tells) = (late.clone(), said.clone());
    let stub = lines(move |mut line| {
        let (waits, tells) = (waits.clone(), tells.clone());
        async move {
            while line.request().await.is_some() {
                if line.requests() == 1 {
                    waits.notified().await;
                    line.say(HINTS).await;
                    tells.notify_one();
                    line.gone().await;
                    return;
                }
                line.say(OK).await;
            }
        }
    })
    .await;
    let retry = TWICE.replace("attempts: 2", "attempts: 2, per-try-timeout: 50ms");
    let proxy = between(stub.address, &[stub.address], &format!(", {retry}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    assert_eq!(statuses(&mut line, GET).await, [200]);
    late.notify_one();
    said.notified().await;
    assert_eq!(statuses(&mut line, GET).await, [200]);
}

#[tokio::test]
async fn before_a_tunnel_interim_answers_pass_and_in_it_bytes() {
    let stub = lines(|mut line| async move {
        line.request().await;
        line.say(HINTS).await;
        line.say("HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n").await;
        while let Some(byte) = line.bytes(1).await {
            line.say(byte).await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say(
            "GET / HTTP/1.1\r\nhost: peer\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        )
        .await;
        for status in [103, 101] {
            assert_eq!(line.head().await.unwrap().status(), status);
        }
        line.say(HINTS).await;
        assert_eq!(line.bytes(HINTS.len()).await.unwrap(), HINTS);
    }
}

#[tokio::test]
async fn clients_that_cannot_be_told_get_the_answer_and_are_counted() {
    let stub = says(&[HINTS, WORKS, "HTTP/1.1 100 Continue\r\n\r\n", OK]).await;
    let proxy = between(stub.address, &[stub.address], ", protocol: http1").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say("GET / HTTP/1.0\r\nhost: peer\r\n\r\n").await;
        assert_eq!(line.head().await.unwrap().status(), 200);
        assert_eq!(line.drain().await, "ok");
    }
    let client = Client::to(proxy.outbound()).await;
    assert_eq!(client.send("GET", "/", "", &[]).await.unwrap().status(), 200);
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    for (callee, count) in [("app", 2), ("peer", 4)] {
        let counted =
            format!("onus_proxy_interim_answers_untold_total{{callee=\"{callee}\"}} {count}\n");
        assert!(metrics.contains(&counted), "{counted} {metrics}");
    }
}
