//! Looks into the first frame of a gRPC answer: where there may be none, and bodies that are
//! particular about being polled.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use onus::{Onus, RetryPolicy};
use tokio::time::Instant;
use tower::{Layer, ServiceExt, service_fn};

use crate::cast::{Broken, Callee, Piece, Pieces, Reply, ask, get, paused, serve};

const MS: Duration = Duration::from_millis(1);

fn call(body: Pieces) -> Request<Pieces> {
    let request = Request::post("/pkg.Service/Method");
    request.header(header::CONTENT_TYPE, "application/grpc").body(body).unwrap()
}

#[test]
fn a_repeat_without_a_policy_gets_its_head_at_once() {
    // [decide-17]
    let at = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let slow = [Piece::Wait(500 * MS), Piece::data("late")];
        let streams = Reply::ok().header("content-type", "application/grpc").body(slow);
        let callee = Callee::new([Reply::status(503), streams]);
        let client = onus.outbound("b").layer(callee);
        let mut node = serve(&onus, move |_| {
            let client = client.clone();
            async move {
                client.clone().oneshot(call(Pieces::sized("ask"))).await.unwrap();
                client.oneshot(call(Pieces::sized("ask"))).await.unwrap();
                Response::new(Pieces::empty())
            }
        });
        let start = Instant::now();
        ask(&mut node, get("/")).await;
        start.elapsed()
    });
    assert_eq!(at, Duration::ZERO);
}

#[test]
fn a_runtime_without_timers_holds_no_head_back() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let onus = Onus::builder("checkout").retry("b", RetryPolicy::attempts(2)).build().unwrap();
        let callee = service_fn(|_: Request<_>| async {
            let value = HeaderValue::from_static("application/grpc");
            let mut response = Response::new(Pieces::new([Piece::Hang]));
            response.headers_mut().insert(header::CONTENT_TYPE, value);
            Ok::<_, Broken>(response)
        });
        let response = onus.outbound("b").layer(callee).oneshot(call(Pieces::empty())).await;
        assert_eq!(response.unwrap().status(), 200);
    });
}

/// A body that panics when it is polled after it has given all that it has, as streams may.
struct Once(Option<Option<Frame<Bytes>>>);

impl Body for Once {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.0.take().expect("it has ended") {
            Some(frame) => {
                self.0 = Some(None);
                Poll::Ready(Some(Ok(frame)))
            }
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let data = self.0.iter().flatten().filter_map(Frame::data_ref).map(Bytes::len);
        SizeHint::with_exact(data.sum::<usize>() as u64)
    }
}

fn status(text: &'static str) -> Frame<Bytes> {
    let mut block = HeaderMap::new();
    block.insert("grpc-status", HeaderValue::from_static(text));
    Frame::trailers(block)
}

#[test]
fn a_body_is_not_polled_after_its_end_nor_cut_off_before_it() {
    // With the size that is told: who knows it stops there, and would not ask for trailers.
    type First = fn() -> Option<Frame<Bytes>>;
    let frames: [(First, Option<u64>); 4] = [
        (|| None, Some(0)),
        (|| Some(Frame::data(Bytes::from_static(b"part"))), Some(4)),
        (|| Some(status("0")), None),
        (|| Some(status("14")), None),
    ];
    for (first, size) in frames {
        paused(async {
            let policy = RetryPolicy::attempts(2).no_budget();
            let onus = Onus::builder("checkout").retry("b", policy).build().unwrap();
            let callee = service_fn(move |_: Request<_>| async move {
                let value = HeaderValue::from_static("application/grpc");
                let mut response = Response::new(Once(Some(first())));
                response.headers_mut().insert(header::CONTENT_TYPE, value);
                Ok::<_, Broken>(response)
            });
            let client = onus.outbound("b").layer(callee);
            let response = client.oneshot(call(Pieces::empty())).await.unwrap();
            assert_eq!(response.body().size_hint().exact(), size);
            let read = response.into_body().collect().await.unwrap();
            assert_eq!(read.trailers().is_some(), first().is_some_and(|frame| frame.is_trailers()));
        });
    }
}
