//! Requests that are given up, answers that nobody needs, and what becomes of connections.

use std::sync::Arc;
use std::time::Duration;

use h2::Reason;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cast::{Client, Line, TWICE, between, lines, proxy, streams};
use crate::operations::admin::get;

#[tokio::test]
async fn a_client_that_goes_away_takes_its_request_with_it() {
    // S49 S56
    for sent in ["GET / HTTP/1.1\r\nhost: peer\r\n\r\n", CUT_UPLOAD] {
        let gone = Arc::new(Notify::new());
        let tells = gone.clone();
        let stub = lines(move |mut line| {
            let tells = tells.clone();
            async move {
                line.head().await;
                line.gone().await;
                tells.notify_one();
            }
        })
        .await;
        let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
        for address in [proxy.inbound(), proxy.outbound()] {
            let mut line = Line::to(address).await;
            line.say(sent).await;
            while stub.connections() == 0 {
                tokio::task::yield_now().await;
            }
            drop(line);
            timeout(Duration::from_secs(10), gone.notified())
                .await
                .expect("its attempt is given up");
        }
        assert_eq!(stub.connections(), 2, "none is tried again");
        let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
        // An upload that is cut ends by itself.
        let given_up = u32::from(sent != CUT_UPLOAD);
        for callee in ["app", "peer"] {
            let counted = format!("onus_proxy_given_up_total{{callee=\"{callee}\"}} {given_up}\n");
            assert!(metrics.contains(&counted), "{sent:?} {metrics}");
        }
    }
}

#[tokio::test]
async fn calls_of_no_request_that_their_client_breaks_off_have_no_outcome() {
    // [drop-4] [drop-6] S49
    const CHUNKS: &str =
        "PUT / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: chunked\r\n\r\n9\r\nsome";
    let http2 = |flags: u8, rest: &[u8]| {
        let headers = [&[0, 0, 9, 1, flags, 0, 0, 0, 1][..], b"\x83\x86\x84\x41\x04peer"].concat();
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0, 0, 0, 4, 0, 0, 0, 0, 0][..], &headers, rest]
            .concat()
    };
    const END: u8 = 5;
    const OPEN: u8 = 4;
    const DATA: &[u8] = b"\0\0\x04\0\0\0\0\0\x01some";
    const RESET: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";
    for (told, resets) in [
        (b"GET / HTTP/1.1\r\nhost: peer\r\n\r\n".to_vec(), false),
        (b"GET / HTTP/1.1\r\nhost: peer\r\n\r\n".to_vec(), true),
        (CUT_UPLOAD.as_bytes().to_vec(), false),
        (CUT_UPLOAD.as_bytes().to_vec(), true),
        (CHUNKS.as_bytes().to_vec(), false),
        (CHUNKS.as_bytes().to_vec(), true),
        (http2(END, b""), false),
        (http2(OPEN, DATA), false),
        (http2(OPEN, DATA), true),
        (http2(OPEN, &[DATA, RESET].concat()), false),
        (http2(END, RESET), false),
    ] {
        for protocol in ["http1", "http2"] {
            let got = broken_off(&told, resets, protocol).await;
            let told = String::from_utf8_lossy(&told);
            assert_eq!(got, [0, 0, 1], "{protocol} {told:?} {resets}");
        }
    }
}

/// How many calls ended ok, as an error or without an outcome where a client says this and goes.
async fn broken_off(told: &[u8], resets: bool, protocol: &str) -> [u64; 3] {
    let stub = match protocol {
        "http1" => {
            lines(|mut line| async move {
                line.head().await;
                line.gone().await;
            })
            .await
        }
        _ => {
            streams(|mut stream| async move {
                stream.gone().await;
            })
            .await
        }
    };
    let proxy =
        between(stub.address, &[stub.address], &format!(", protocol: {protocol}, {TWICE}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say(told).await;
    while stub.connections() == 0 {
        tokio::task::yield_now().await;
    }
    match resets {
        true => line.reset(),
        false => drop(line),
    }
    let counted = async {
        loop {
            let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
            let of = |outcome: &str| -> u64 {
                let outcome = format!("outcome=\"{outcome}\"");
                let lines = metrics.lines().filter(|line| line.starts_with("onus_calls_total{"));
                let values = lines.filter(|line| line.contains(&outcome));
                values.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
            };
            let counts = ["ok", "error", "abandoned"].map(of);
            if counts.iter().sum::<u64>() > 0 {
                return counts;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(10), counted).await.expect("it is counted")
}

#[tokio::test]
async fn streams_that_are_given_up_cost_their_neighbours_nothing() {
    // S21
    let stub = streams(|mut stream| async move {
        if stream.request().await.is_some_and(|seen| seen.uri.path() == "/slow") {
            assert_eq!(stream.gone().await, Some(Reason::CANCEL));
        } else {
            stream.ends(200, &[]);
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let client = Client::to(proxy.outbound()).await;
    for round in 0..20 {
        let mut slow = JoinSet::new();
        for _ in 0..20 {
            let client = client.clone();
            slow.spawn(async move { client.send("GET", "/slow", "", &[]).await.map(drop) });
        }
        let before = stub.executed("/slow");
        while stub.executed("/slow") < before.max(round * 20 + 1) {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.send("GET", "/", "", &[]).await.unwrap().status(), 200);
        slow.shutdown().await;
        assert_eq!(client.send("GET", "/", "", &[]).await.unwrap().status(), 200);
    }
    assert_eq!(stub.connections(), 1, "all on one connection");
}

#[tokio::test]
async fn failed_answers_give_their_connections_back() {
    // S24
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say(format!("HTTP/1.1 503 X\r\ncontent-length: 20000\r\n\r\n{:020000}", 0)).await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    for _ in 0..50 {
        line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
        let head = line.head().await.unwrap();
        assert_eq!(line.body(&head).await.unwrap().0.len(), 20_000);
    }
    assert_eq!((stub.seen().len(), stub.connections()), (100, 1));
}

#[tokio::test]
async fn an_answer_that_comes_early_does_not_wait_for_the_upload() {
    // S05
    let stub = lines(|mut line| async move {
        line.head().await;
        line.say("HTTP/1.1 413 X\r\ncontent-length: 0\r\n\r\n").await;
        line.gone().await;
    })
    .await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say(CUT_UPLOAD).await;
        assert_eq!(line.head().await.unwrap().status(), 413);
        // It goes on, or its connection is closed; it does not stand still.
        let rest = line.say(vec![b'x'; 4 << 20]);
        timeout(Duration::from_secs(10), rest).await.expect("the upload does not stand still");
    }
    assert_eq!(stub.connections(), 2);
}

#[tokio::test]
async fn events_pass_one_by_one() {
    // S11
    let next = Arc::new(Notify::new());
    let waits = next.clone();
    let stub = lines(move |mut line| {
        let waits = waits.clone();
        async move {
            line.request().await;
            line.say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n").await;
            line.say("transfer-encoding: chunked\r\n\r\n").await;
            for _ in 0..10 {
                waits.notified().await;
                line.say("9\r\ndata: a\n\n\r\n").await;
            }
            line.say("0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET /events HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = line.head().await.unwrap();
    assert_eq!(head.headers["content-type"], "text/event-stream");
    for _ in 0..10 {
        // Each is made when the one before has arrived.
        next.notify_one();
        assert_eq!(line.bytes(14).await.unwrap(), "9\r\ndata: a\n\n\r\n");
    }
    assert_eq!(line.bytes(5).await.unwrap(), "0\r\n\r\n");
}

#[tokio::test]
async fn a_callee_that_hangs_holds_up_no_other_callee() {
    // S95
    let hangs = lines(|mut line| async move {
        line.request().await;
        line.stays().await;
    })
    .await;
    let well = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = proxy(&format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"{0}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         callees: {{hangs: {{address: \"{1}\"}}, well: {{address: \"{0}\"}}}}\n\
         limits: {{callee-connections: 4, callee-pending: 4, connect-timeout: 10s}}\n",
        well.address, hangs.address
    ))
    .await;
    let mut held = Vec::new();
    for number in 0..20 {
        let mut line = Line::to(proxy.outbound()).await;
        line.say("GET / HTTP/1.1\r\nhost: hangs\r\n\r\n").await;
        if number >= 8 {
            // Four are under way and four wait for them; the others are told at once.
            let head = line.head().await.unwrap();
            let status = head.headers["proxy-status"].to_str().unwrap();
            assert_eq!(head.status(), 503);
            assert!(status.contains("connection_limit_reached"), "{status}");
        } else {
            held.push(line);
            let page = async || get(proxy.admin(), "/metrics").await.2;
            let waiting = format!(
                "callee_waiting{{callee=\"hangs\"}} {}.0",
                (number + 1_usize).saturating_sub(4)
            );
            while hangs.connections() < (number + 1).min(4) || !page().await.contains(&waiting) {
                tokio::task::yield_now().await;
            }
        }
        let mut line = Line::to(proxy.outbound()).await;
        line.say("GET / HTTP/1.1\r\nhost: well\r\n\r\n").await;
        assert_eq!(line.head().await.unwrap().status(), 200);
    }
    let (_, _, page) = get(proxy.admin(), "/metrics").await;
    assert!(page.contains("onus_proxy_refused_total{callee=\"hangs\"} 12"), "{page}");
}

#[tokio::test]
async fn names_that_strangers_choose_are_in_no_metric() {
    // S79
    let stub = lines(|line| line.stays()).await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    for number in 0..200 {
        line.say(format!("GET /{number} HTTP/1.1\r\nhost: host-{number}\r\n\r\n")).await;
        let head = line.head().await.unwrap();
        line.body(&head).await.unwrap();
        assert_eq!(head.status(), 404);
    }
    let (_, _, page) = get(proxy.admin(), "/metrics").await;
    assert!(!page.contains("host-"), "{page}");
}

/// A part of an upload that does not end.
const CUT_UPLOAD: &str = "PUT / HTTP/1.1\r\nhost: peer\r\ncontent-length: 9000000\r\n\r\nsome";
