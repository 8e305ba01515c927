//! gRPC: the outcome is in the trailers, or in the one header block of an answer without any.

use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::Body;
use http_body_util::BodyExt;
use onus::{CallOutcome, Onus, RetryPolicy};
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Piece, Pieces, Reply, ask, counted, paused, said, serve};

fn call() -> Request<Pieces> {
    let request = Request::post("/pkg.Service/Method");
    request.header(header::CONTENT_TYPE, "application/grpc").body(Pieces::sized("ask")).unwrap()
}

fn grpc() -> http::response::Builder {
    Response::builder().header(header::CONTENT_TYPE, "application/grpc")
}

/// An answer whose trailers are these.
fn ends_with(lines: &[(&'static str, &'static str)]) -> Pieces {
    Pieces::new([Piece::data("part"), Piece::Trailers(lines.to_vec())])
}

#[test]
fn claims_are_in_the_block_that_has_the_status() {
    // [term-5] [wire-1] [wire-8] [claim-9]
    let check = |make: fn() -> Response<Pieces>, head: &str, trailers: &str| {
        let (in_head, in_trailers) = paused(async {
            let onus = Onus::builder("checkout").build().unwrap();
            let mut node = serve(&onus, move |_| async move { make() });
            let response = ask(&mut node, call()).await;
            let in_head = said(response.headers());
            let all = response.into_body().collect().await.unwrap();
            (in_head, all.trailers().map_or_else(|| "no trailers".to_owned(), said))
        });
        assert_eq!((&*in_head, &*in_trailers), (head, trailers));
    };
    let failed: fn() -> _ = || grpc().body(ends_with(&[("grpc-status", "14")])).unwrap();
    check(failed, "nothing", "claimed own");
    check(|| grpc().body(ends_with(&[("grpc-status", "0")])).unwrap(), "nothing", "nothing");
    check(|| grpc().body(ends_with(&[("grpc-status", "5")])).unwrap(), "nothing", "nothing");
    let copied: fn() -> _ = || {
        let claim = ("onus-claim", "unclaimed;reason=exhausted");
        grpc().body(ends_with(&[("grpc-status", "13"), claim])).unwrap()
    };
    check(copied, "nothing", "claimed own");
    let at_once: fn() -> _ = || grpc().header("grpc-status", "14").body(Pieces::empty()).unwrap();
    check(at_once, "claimed own", "no trailers");
    let fine: fn() -> _ = || grpc().header("grpc-status", "0").body(Pieces::empty()).unwrap();
    check(fine, "nothing", "no trailers");
}

#[test]
fn vetoes_of_both_protocols_go_with_unclaimed_errors() {
    // [wire-11] [wire-14]
    let check = |own: Option<&'static str>, expected| {
        let trailers = paused(async {
            let onus = Onus::builder("checkout").enforce().build().unwrap();
            let reply = Reply::status(200).header("grpc-status", "14");
            let reply = reply.header("onus-claim", "unclaimed");
            let policy = RetryPolicy::attempts(2).no_probes();
            let builder = Onus::builder("checkout").enforce().retry("payments", policy);
            let onus = builder.build().unwrap_or(onus);
            let client = onus.outbound("payments").layer(Callee::new([reply]));
            let mut node = serve(&onus, move |request| {
                let client = client.clone();
                async move {
                    client.oneshot(request).await.unwrap();
                    let mut lines = vec![("grpc-status", "14")];
                    lines.extend(own.map(|pushback| ("grpc-retry-pushback-ms", pushback)));
                    grpc().body(ends_with(&lines)).unwrap()
                }
            });
            let all = ask(&mut node, call()).await.into_body().collect().await.unwrap();
            all.trailers().cloned().unwrap()
        });
        assert_eq!(said(&trailers), "unclaimed suppressed");
        assert_eq!(trailers["x-envoy-ratelimited"], "true");
        assert_eq!(trailers["grpc-retry-pushback-ms"], expected);
    };
    check(None, "-1");
    check(Some("250"), "250");
}

/// A call through the outbound layer: attempts, outcome in the extensions of the head, and how the
/// call is counted when all is read.
#[track_caller]
fn check(reply: Reply, attempts: usize, outcome: Option<&str>, counts: [u64; 3]) -> HeaderMap {
    let (seen, stop, calls, hidden) = paused(async {
        let policy = RetryPolicy::attempts(2).no_budget().no_probes();
        let onus = Onus::builder("checkout").enforce().retry("payments", policy).build().unwrap();
        let callee = Callee::new([reply]);
        let client = onus.outbound("payments").layer(callee.clone());
        let response = client.oneshot(call()).await.unwrap();
        let stop = response.extensions().get::<CallOutcome>().map(|outcome| outcome.stop.as_str());
        let (head, body) = response.into_parts();
        let all = body.collect().await;
        let mut blocks = head.headers;
        if let Some(trailers) = all.as_ref().ok().and_then(|all| all.trailers()) {
            blocks.extend(trailers.clone());
        }
        let calls = ["ok", "error", "abandoned"]
            .map(|outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]));
        (callee.seen().len(), stop, calls, blocks)
    });
    assert_eq!((seen, stop, calls), (attempts, outcome, counts));
    hidden
}

#[test]
fn calls_end_with_their_trailers() {
    // [term-5] [decide-7] [wire-9]
    let streams = |lines: &[(&'static str, &'static str)]| {
        let reply = Reply::ok().header("content-type", "application/grpc");
        reply.body([Piece::data("part"), Piece::Trailers(lines.to_vec())])
    };
    check(streams(&[("grpc-status", "0")]), 1, None, [1, 0, 0]);
    check(streams(&[("grpc-status", "5")]), 1, None, [1, 0, 0]);
    let claim = ("onus-claim", "claimed;reason=own");
    let blocks = check(streams(&[("grpc-status", "14"), claim]), 1, None, [0, 1, 0]);
    assert!(!blocks.contains_key("onus-claim"), "the application sees no claim");
    let reply = Reply::ok().header("content-type", "application/grpc");
    check(reply.clone().body([Piece::data("part")]), 1, None, [0, 1, 0]);
    check(reply.body([Piece::data("part"), Piece::Break]), 1, None, [0, 1, 0]);
    let at_once = Reply::ok().header("grpc-status", "14").header("onus-claim", "claimed");
    let blocks = check(at_once, 2, Some("exhausted"), [0, 1, 0]);
    assert!(!blocks.contains_key("onus-claim"), "the application sees no claim");
    // A proxy on the way answers in HTTP.
    check(Reply::status(503), 2, Some("exhausted"), [0, 1, 0]);
}

#[test]
fn a_reader_that_stops_at_the_end_has_seen_that_the_status_is_missing() {
    // As hyper's server does when it passes an answer on: it never asks for what comes behind the
    // end of the stream.
    let calls = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let reply = Reply::ok().header("content-type", "application/grpc");
        let reply = reply.body([Piece::data("a"), Piece::data("b")]);
        let client = onus.outbound("payments").layer(Callee::new([reply]));
        let mut body = client.oneshot(call()).await.unwrap().into_body();
        while !body.is_end_stream() {
            assert!(body.frame().await.unwrap().unwrap().is_data());
        }
        drop(body);
        ["ok", "error", "abandoned"]
            .map(|outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]))
    });
    assert_eq!(calls, [0, 1, 0]);
}

#[test]
fn procedures_are_methods() {
    // [term-1]
    let calls = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let reply = Reply::ok().header("grpc-status", "0");
        let client = onus.outbound("payments").layer(Callee::new([reply]));
        let mut node = serve(&onus, move |_| {
            let client = client.clone();
            async move {
                client.oneshot(call()).await.unwrap();
                grpc()
                    .header("grpc-status", HeaderValue::from_static("0"))
                    .body(Pieces::empty())
                    .unwrap()
            }
        });
        ask(&mut node, call()).await;
        let method = "/pkg.Service/Method";
        let labels = [("caller_method", method), ("callee_method", method)];
        counted(&onus, "onus_calls_total", &labels)
    });
    assert_eq!(calls, 1);
}
