//! Where the status of a failed call stands, and the claim with it.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body_util::BodyExt;
use onus::Onus;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt;

use super::node::{Messages, Node, says};
use super::wire::{Client, UNARY, UPLOAD, WATCH, channel};
use super::{framed, two};
use crate::cast::{Piece, Pieces, counted, said};
use crate::sockets::peer::{Answers, Peer};

fn grpc() -> http::response::Builder {
    Response::builder().header(header::CONTENT_TYPE, "application/grpc")
}

fn fine() -> Response<Pieces> {
    let pieces = [Piece::data(framed("fine")), Piece::Trailers(vec![("grpc-status", "0")])];
    grpc().body(Pieces::new(pieces)).unwrap()
}

/// A failure in the one block of the answer.
fn alone(claim: &'static str) -> Response<Pieces> {
    let head = grpc().header("grpc-status", "14").header("onus-claim", claim);
    head.body(Pieces::empty()).unwrap()
}

/// A failure in trailers, behind what came of a body.
fn behind(data: Option<&'static str>, claim: &'static str) -> Response<Pieces> {
    let trailers = Piece::Trailers(vec![("grpc-status", "14"), ("onus-claim", claim)]);
    let data = data.map(|text| Piece::data(framed(text)));
    grpc().body(Pieces::new(data.into_iter().chain([trailers]))).unwrap()
}

#[tokio::test]
async fn a_failure_is_retried_wherever_its_status_stands_before_a_message() {
    // [term-5] [decide-21]
    let check = async |answers: Answers, attempts: usize, code: Code, counts: [u64; 2]| {
        let peer = Peer::start(answers).await;
        let shop = Onus::builder("shop").enforce().retry("ledger", two()).build().unwrap();
        let mut client = Client::new(&shop, "ledger", peer.address);
        let answer = client.upload(tokio_stream::iter(["a", "b"].map(str::to_owned))).await;
        let found = match &answer {
            Ok(_) => Code::Ok,
            Err(status) => {
                assert!(status.metadata().get("onus-claim").is_none(), "claims are hidden");
                status.code()
            }
        };
        let sent = peer.take();
        assert_eq!((sent.len(), found), (attempts, code), "{answer:?}");
        for request in &sent {
            let whole = [framed("a"), framed("b")].concat();
            assert_eq!(request.body(), &Bytes::from(whole), "each attempt is the whole request");
        }
        let outcomes = ["ok", "error"]
            .map(|outcome| counted(&shop, "onus_calls_total", &[("outcome", outcome)]));
        assert_eq!(outcomes, counts);
    };
    let (ok, failed) = (Code::Ok, Code::Unavailable);
    check(|n, _| Some(if n == 0 { alone("claimed") } else { fine() }), 2, ok, [1, 0]).await;
    check(|n, _| Some(if n == 0 { behind(None, "claimed") } else { fine() }), 2, ok, [1, 0]).await;
    check(|_, _| Some(alone("claimed")), 2, failed, [0, 1]).await;
    check(|_, _| Some(behind(None, "claimed")), 2, failed, [0, 1]).await;
    check(|_, _| Some(alone("unclaimed")), 1, failed, [0, 1]).await;
    check(|_, _| Some(behind(None, "unclaimed")), 1, failed, [0, 1]).await;
    // A message commits the call.
    check(|_, _| Some(behind(Some("part"), "claimed")), 1, failed, [0, 1]).await;
    // No failure of the callee.
    let missing: Answers =
        |_, _| Some(grpc().header("grpc-status", "5").body(Pieces::empty()).unwrap());
    check(missing, 1, Code::NotFound, [1, 0]).await;
    // A proxy on the way answers in HTTP; tonic reads the same status in it.
    let proxy: Answers = |n, _| {
        let busy = Response::builder().status(503).body(Pieces::empty());
        Some(if n == 0 { busy.unwrap() } else { fine() })
    };
    check(proxy, 2, ok, [1, 0]).await;
}

/// Head and trailers of the answer to a call that no layer touches.
async fn blocks(node: &Node, method: &str) -> (HeaderMap, HeaderMap) {
    let request = Request::post(format!("http://{}{method}", node.address))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Pieces::new([Piece::data(framed("ask"))])))
        .unwrap();
    let answer = channel(node.address).oneshot(request).await.unwrap();
    let (head, body) = answer.into_parts();
    let trailers = body.collect().await.unwrap().trailers().cloned();
    (head.headers, trailers.unwrap_or_default())
}

#[tokio::test]
async fn claims_are_in_the_trailers_and_nowhere_else_unless_the_head_is_all() {
    // [wire-1] [claim-9]
    type Fails = fn() -> Result<Messages, Status>;
    let check = async |method, fails: Fails, head: &str, trailers: &str| {
        let ledger = Onus::builder("ledger").build().unwrap();
        let node = Node::start(&ledger, move |_| async move { fails() }).await;
        let (in_head, in_trailers) = blocks(&node, method).await;
        assert_eq!((&*said(&in_head), &*said(&in_trailers)), (head, trailers), "{method}");
        let status = |block: &HeaderMap| block.contains_key("grpc-status");
        assert!(status(&in_head) ^ status(&in_trailers), "{method}: one status");
        if trailers != "nothing" {
            assert!(status(&in_trailers), "{method}: the claim stands beside the status");
        }
    };
    let at_once: Fails = || Err(Status::unavailable("out of order"));
    for method in [UNARY, UPLOAD, WATCH] {
        check(method, at_once, "claimed own", "nothing").await;
    }
    let later: Fails = || Ok(says(&["part"], Err(Status::unavailable("out of order"))));
    check(WATCH, later, "nothing", "claimed own").await;
    let empty: Fails = || Ok(says(&[], Err(Status::unavailable("out of order"))));
    check(WATCH, empty, "nothing", "claimed own").await;
    check(WATCH, || Ok(says(&["part"], Ok(()))), "nothing", "nothing").await;
    check(UNARY, || Ok(says(&["all"], Ok(()))), "nothing", "nothing").await;
    check(UNARY, || Err(Status::not_found("no such entry")), "nothing", "nothing").await;
    // A status that a callee gave, with what was copied along.
    let copied: Fails = || {
        let mut status = Status::unavailable("out of order");
        let claim = "unclaimed;reason=exhausted".parse().unwrap();
        status.metadata_mut().insert("onus-claim", claim);
        Err(status)
    };
    check(UNARY, copied, "claimed own", "nothing").await;
}

#[tokio::test]
async fn in_a_chain_the_direct_caller_alone_retries() {
    // [decide-1] [claim-8]
    type Fails = fn() -> Result<Messages, Status>;
    let check = async |method: &'static str, fails: Fails| {
        let build = |name, callee: &str| {
            Onus::builder(name).enforce().retry(callee, two()).build().unwrap()
        };
        let (a, b, c) = (build("a", "b"), build("b", "c"), build("c", "nobody"));
        let last = Node::start(&c, move |_| async move { fails() }).await;
        let client = Client::new(&b, "c", last.address);
        let middle = Node::start(&b, move |_| pass_on(client.clone(), method)).await;
        let client = Client::new(&a, "b", middle.address);
        let first = Node::start(&a, move |_| pass_on(client.clone(), method)).await;
        let (_, end) = Client::plain(first.address).call(method).await;
        let status = end.expect_err("the last one fails");
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert_eq!([first.calls(), middle.calls(), last.calls()], [1, 1, 2], "{method}");
        let claim = status.metadata().get("onus-claim").expect("a claim").to_str().unwrap();
        assert_eq!(said(&status.metadata().clone().into_headers()), "unclaimed suppressed");
        assert!(claim.contains("origin=\"c\";hops=2"), "{claim}");
    };
    for method in [UNARY, UPLOAD, WATCH] {
        check(method, || Err(Status::unavailable("out of order"))).await;
    }
    check(WATCH, || Ok(says(&[], Err(Status::unavailable("out of order"))))).await;
}

/// Answers with what a callee answers, status and metadata included.
async fn pass_on(mut client: Client, method: &'static str) -> Result<Messages, Status> {
    let (text, end) = client.call(method).await;
    end.map(|()| says(&[&text], Ok(())))
}
