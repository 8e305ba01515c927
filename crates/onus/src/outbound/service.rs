//! The client service that retries under ownership.

use std::cell::LazyCell;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use onus_agent::classify::method_kind;
use tower_service::Service;

use super::call::{Call, Kept};
use super::future::OutboundFuture;
use super::hop::{Hop, Unclassified};
use super::start::{Start, is_small};
use crate::replay::{Attempt, BoxError, DigestCell, ReplayBody, Tape};

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
    C: super::ClassifyError<S::Error> + Clone,
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let hop = &*self.hop;
        let (clock, classify) = (hop.onus.clock(), hop.classify.clone());
        let now = LazyCell::new(|| clock.now());
        let now = || *now;
        let limit = hop.onus.replay_limits().per_request();
        let kind = method_kind(request.method(), request.headers());
        let inbound = hop.find.inbound(&hop.onus, request.headers_mut());
        let start = Start::of(hop, inbound, &request, kind, now);
        if start.depends_on_body(request.body(), limit) {
            let onus = hop.onus.clone();
            let kept = self.keep(request);
            return OutboundFuture::reading(
                onus,
                start,
                Call::unstarted(clock, classify, kept, kind),
            );
        }
        let mut outbound = start.begin(&hop.onus, request.headers(), now);
        if outbound.may_send(now).is_err() {
            return OutboundFuture::out_of_time(Call::new(clock, classify, outbound, kind));
        }
        if !outbound.may_retry() {
            // A call of no request has no repeats; whether its body broke counts for it too.
            let limit = if outbound.is_tied() { limit } else { 0 };
            let digest = digest_of(request.body(), limit);
            outbound.attempt_started(request.headers_mut(), now);
            let once = |body| ReplayBody::once(body, Attempt::FIRST, digest.clone());
            let future = self.inner.call(request.map(once));
            let call = Call::new(clock, classify, outbound, kind).with_digest(digest);
            return OutboundFuture::sending(future, call);
        }
        let kept = self.keep(request);
        let first = kept.tape.attempt(Attempt::FIRST);
        let mut call = Call::new(clock, classify, outbound, kind).with_kept(kept);
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

impl<S: Clone, C> OutboundService<S, C> {
    /// What is needed to send `request` more than once. The service that is ready goes with it;
    /// the next caller gets a clone.
    fn keep<B: Body>(&mut self, request: Request<B>) -> Box<Kept<S, B>> {
        let (head, body) = request.into_parts();
        let clone = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, clone);
        let tape = Tape::new(body, self.hop.onus.replay_limits());
        let tape = if self.hop.trails { tape.with_trail() } else { tape };
        Box::new(Kept { service, head, tape, attempt: Attempt::FIRST })
    }
}

/// Where it shows how a body goes; `None` where there is nothing of it. Only of a small one a digest
/// is made.
fn digest_of<B: Body>(body: &B, limit: usize) -> Option<Arc<DigestCell>> {
    let limit = if is_small(body, limit) { limit } else { 0 };
    (!body.is_end_stream()).then(|| Arc::new(DigestCell::new(limit)))
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
