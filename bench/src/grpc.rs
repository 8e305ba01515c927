//! A unary gRPC call through a bare stack, with and without the layers: a message each way, and the
//! status in trailers.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use onus::{InboundService, Onus, OutboundService};
use tower_layer::Layer;
use tower_service::Service;

use crate::layers::Caller;

/// A callee that answers each call with a message and status 0.
#[derive(Clone, Copy, Debug)]
pub struct Callee;

/// The stack without Onus.
pub type Bare = Caller<Callee>;

/// The stack with both layers.
pub type Layered = InboundService<Caller<OutboundService<Callee>>>;

/// A message, then trailers.
#[derive(Debug)]
pub struct Reply {
    message: Option<Bytes>,
    trailers: bool,
}

/// A message of five bytes, with its length before it.
const MESSAGE: &[u8] = b"\0\0\0\0\x05hello";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The stack without Onus.
#[must_use]
pub fn bare() -> Bare {
    Caller(Callee)
}

/// The stack with both layers, in mode enforce, where the hop may not retry.
///
/// # Panics
///
/// Never: the configuration is right.
#[must_use]
pub fn layered() -> Layered {
    let onus = Onus::builder("caller").enforce().build().expect("the configuration is right");
    onus.inbound().layer(Caller(onus.outbound("callee").layer(Callee)))
}

/// A call as gRPC libraries send it.
#[must_use]
pub fn request() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::from_static(MESSAGE)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("http://callee/bench.Greeter/Hello");
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    request
}

impl<B> Service<Request<B>> for Callee {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let message = Some(Bytes::from_static(MESSAGE));
        let mut response = Response::new(Reply { message, trailers: true });
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        ready(Ok(response))
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        let trailers = std::mem::take(&mut self.trailers).then(|| {
            let status = HeaderValue::from_static("0");
            Ok(Frame::trailers(HeaderMap::from_iter([(STATUS, status)])))
        });
        Poll::Ready(trailers)
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && !self.trailers
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}
