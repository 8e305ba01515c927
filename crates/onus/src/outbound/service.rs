//! The client service that retries under ownership.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::task::{Context, Poll};

use foldhash::fast::FixedState;
use http::{Request, Response};
use http_body::Body;
use onus_agent::classify::method_kind;
use onus_agent::{CallStart, MethodKind, Outbound, Timestamp};
use tower_service::Service;

use super::call::{Call, Kept};
use super::future::OutboundFuture;
use super::hop::{Hop, Unclassified};
use crate::procedure::{self, RequestHead};
use crate::replay::{Attempt, BoxError, ReplayBody, Tape};
use crate::scope;

/// A client service whose calls are retried and accounted for under ownership.
pub struct OutboundService<S, C = Unclassified> {
    inner: S,
    hop: Arc<Hop<C>>,
}

impl<S, C> OutboundService<S, C> {
    pub(crate) fn new(inner: S, hop: Arc<Hop<C>>) -> Self {
        Self { inner, hop }
    }
}

impl<S, C, B, R> Service<Request<B>> for OutboundService<S, C>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>> + Clone,
    C: super::ClassifyError<S::Error>,
    B: Body,
    B::Error: Into<BoxError>,
    R: Body,
{
    type Response = Response<super::OutboundBody<R>>;
    type Error = S::Error;
    type Future = OutboundFuture<S, C, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let now = self.hop.onus.clock().now();
        let kind = method_kind(request.method(), request.headers());
        let mut outbound = start(&self.hop, &request, kind, now);
        if outbound.may_send(now).is_err() {
            return OutboundFuture::out_of_time(Call::new(self.hop.clone(), outbound, None, kind));
        }
        if !outbound.may_retry() {
            let mut request = request.map(|body| ReplayBody::once(body, Attempt::FIRST, None));
            outbound.attempt_started(request.headers_mut());
            let call = Call::new(self.hop.clone(), outbound, None, kind);
            return OutboundFuture::sending(self.inner.call(request), call);
        }
        let (head, body) = request.into_parts();
        // The service that is ready makes this call; the next caller gets a clone.
        let clone = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, clone);
        let tape = Tape::new(body, self.hop.onus.replay_limits());
        let first = tape.attempt(Attempt::FIRST);
        let kept = Box::new(Kept { service, head, tape, attempt: Attempt::FIRST });
        let mut call = Call::new(self.hop.clone(), outbound, Some(kept), kind);
        match first.ok().and_then(|body| call.request(body)) {
            Some((service, request)) => {
                let future = service.call(request);
                OutboundFuture::sending(future, call)
            }
            // Nothing has been read of a new tape, so there is always a first attempt.
            None => OutboundFuture::out_of_time(call),
        }
    }
}

/// Finds the request that the call belongs to, and its edge.
fn start<C, B: Body>(
    hop: &Hop<C>,
    request: &Request<B>,
    method: MethodKind,
    now: Timestamp,
) -> Outbound {
    let onus = &hop.onus;
    let agent = onus.agent();
    let inbound = scope::current();
    let head = RequestHead::of(request);
    let callee = hop.callee.of(onus, &head);
    let procedure = procedure::of(agent, &head, hop.procedure.as_ref());
    let edge = agent.edge(inbound.as_ref(), callee, procedure, now);
    let start = CallStart {
        method,
        head: if inbound.is_some() { head_hash(&head) } else { 0 },
        body: request.body().is_end_stream().then_some(onus.empty_body()),
        bits: fastrand::u64(..),
    };
    agent.call_started(edge, inbound, start, head.headers, now)
}

/// A number that is equal for requests with the same method, path and query.
fn head_hash(head: &RequestHead<'_>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    head.method.hash(&mut hasher);
    head.uri.path().hash(&mut hasher);
    head.uri.query().hash(&mut hasher);
    hasher.finish()
}

impl<S: Clone, C> Clone for OutboundService<S, C> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), hop: self.hop.clone() }
    }
}

impl<S: fmt::Debug, C> fmt::Debug for OutboundService<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
