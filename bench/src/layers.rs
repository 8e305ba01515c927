//! A request through a bare stack: a service that answers by calling another, with and without
//! the layers around both.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Empty;
use onus::{InboundService, Onus, OutboundService, RetryPolicy};
use tower_layer::Layer;
use tower_service::Service;

/// A callee that answers at once.
#[derive(Clone, Copy, Debug)]
pub struct Callee;

/// A service that passes each request on.
#[derive(Clone, Debug)]
pub struct Caller<S>(pub(crate) S);

/// The stack without Onus.
pub type Bare = Caller<Callee>;

/// The stack with both layers.
pub type Layered = InboundService<Caller<OutboundService<Callee>>>;

/// The stack without Onus.
#[must_use]
pub fn bare() -> Bare {
    Caller(Callee)
}

/// The stack with both layers, in mode enforce.
///
/// # Panics
///
/// Never: the configuration is right.
#[must_use]
pub fn layered(retries: Retries) -> Layered {
    let builder = Onus::builder("caller").enforce();
    let builder = match retries {
        Retries::None => builder,
        Retries::Allowed => builder.retry("callee", RetryPolicy::articles(2)),
    };
    let onus = builder.build().expect("the configuration is right");
    onus.inbound().layer(Caller(onus.outbound("callee").layer(Callee)))
}

/// Whether the hop may retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// No policy names the callee.
    None,
    /// Two attempts, with a budget.
    Allowed,
}

/// A request as a client sends it, with the headers that most have.
#[must_use]
pub fn request() -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    let headers = request.headers_mut();
    for (name, value) in [
        (http::header::HOST, "caller:8080"),
        (http::header::ACCEPT, "*/*"),
        (http::header::USER_AGENT, "bench/1"),
    ] {
        headers.insert(name, http::HeaderValue::from_static(value));
    }
    request
}

/// Sends one request and reads its answer to the end.
///
/// # Panics
///
/// If the stack does not answer at once.
pub fn serve<S, B, R>(stack: &mut S, request: Request<B>)
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(stack.poll_ready(&mut cx).is_ready(), "the stack is always ready");
    let future = pin!(stack.call(request));
    let Poll::Ready(Ok(response)) = future.poll(&mut cx) else {
        panic!("the stack answers at once");
    };
    let mut body = pin!(response.into_body());
    while !body.is_end_stream() {
        if body.as_mut().poll_frame(&mut cx).is_pending() {
            panic!("the body is there at once");
        }
    }
}

impl<B> Service<Request<B>> for Callee {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(Response::new(Empty::new())))
    }
}

impl<S, B> Service<Request<B>> for Caller<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> S::Future {
        self.0.call(request)
    }
}
