//! Answers that break behind their head: whoever reads them sees that, and it counts.

use std::sync::Arc;

use h2::Reason;
use http::Request;
use http_body_util::BodyExt;
use onus::Onus;
use tokio::sync::Notify;

use super::line::{Line, lines};
use super::relay::{Speaks::Http1, Speaks::Http2, checkout, plain, relay, twice};
use super::streams::streams;
use crate::cast::{Pieces, counted, until};

/// The call and the request have both failed, once.
async fn failed_once(onus: &Onus) {
    let calls = |outcome| counted(onus, "onus_calls_total", &[("outcome", outcome)]);
    until(|| calls("error") == 1).await;
    let requests = |outcome| counted(onus, "onus_requests_total", &[("outcome", outcome)]);
    until(|| requests("error") == 1).await;
    assert_eq!((calls("ok"), calls("abandoned")), (0, 0));
    assert_eq!((requests("ok"), requests("cancelled")), (0, 0));
}

#[tokio::test]
async fn a_cut_answer_reaches_the_caller_cut() {
    // [term-3] [decide-7] S23
    const SIZED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (head, part) in [(SIZED, ""), (SIZED, "part"), (CHUNKED, ""), (CHUNKED, "4\r\npart\r\n")] {
        for resets in [false, true] {
            let arrived = Arc::new(Notify::new());
            let cut = arrived.clone();
            let stub = lines(move |mut line| {
                let cut = cut.clone();
                async move {
                    line.request().await;
                    line.say(head).await;
                    line.say(part).await;
                    cut.notified().await;
                    if resets {
                        line.reset();
                    }
                }
            })
            .await;
            let onus = checkout(twice());
            let service = relay(&onus, Http1, Http1, stub.address).await;
            let mut caller = Line::to(service).await;
            caller.say("GET /pay HTTP/1.1\r\nhost: x\r\n\r\n").await;
            assert_eq!(caller.head().await.unwrap().status(), 200);
            assert_eq!(caller.bytes(part.len()).await.unwrap(), part);
            arrived.notify_one();
            // Neither the bytes that were announced nor a last chunk.
            assert_eq!(caller.drain().await, "", "{head:?} {part:?} {resets}");
            assert_eq!(stub.attempts(), ["-"]);
            failed_once(&onus).await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_is_whole() {
    // S23
    let stub = lines(|mut line| async move {
        line.request().await;
        line.say("HTTP/1.1 200 OK\r\n\r\nall of it").await;
        line.half_close().await;
        line.gone().await;
    })
    .await;
    let onus = checkout(twice());
    let service = relay(&onus, Http1, Http1, stub.address).await;
    let mut caller = Line::to(service).await;
    caller.say("GET /pay HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = caller.head().await.unwrap();
    assert_eq!(caller.body(&head).await.unwrap().0, "all of it");
    let ok = |family| counted(&onus, family, &[("outcome", "ok")]) == 1;
    until(|| ok("onus_calls_total") && ok("onus_requests_total")).await;
    assert_eq!(stub.attempts(), ["-"]);
}

#[tokio::test]
async fn a_stream_that_is_reset_is_reset_for_the_caller() {
    // [term-3] S23
    for speaks in [Http1, Http2] {
        let arrived = Arc::new(Notify::new());
        let cut = arrived.clone();
        let stub = streams(move |mut stream| {
            let cut = cut.clone();
            async move {
                stream.request().await;
                stream.head(200, &[]);
                stream.data("part");
                cut.notified().await;
                stream.reset(Reason::INTERNAL_ERROR);
            }
        })
        .await;
        let onus = checkout(twice());
        let service = relay(&onus, speaks, Http2, stub.address).await;
        let request = Request::get(format!("http://{service}/")).body(Pieces::empty()).unwrap();
        let mut body = plain(speaks).request(request).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "part");
        arrived.notify_one();
        assert!(body.frame().await.unwrap().is_err(), "{speaks:?}");
        assert_eq!(stub.attempts(), ["-"]);
        failed_once(&onus).await;
    }
}
