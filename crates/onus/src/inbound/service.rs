//! The service that serves requests under ownership.

use std::fmt;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use onus_agent::classify::method_kind;
use tower_service::Service;

use super::body::InboundBody;
use super::future::InboundFuture;
use super::served::Served;
use crate::correlation::Correlation;
use crate::onus::Onus;
use crate::procedure::{self, ProcedureFn, RequestHead};
use crate::scope;

/// A service whose errors carry claims.
#[derive(Clone)]
pub struct InboundService<S> {
    inner: S,
    onus: Onus,
    procedure: Option<ProcedureFn>,
    correlation: Option<Correlation>,
}

impl<S> InboundService<S> {
    pub(crate) fn new(
        inner: S,
        onus: Onus,
        procedure: Option<ProcedureFn>,
        correlation: Option<Correlation>,
    ) -> Self {
        Self { inner, onus, procedure, correlation }
    }
}

impl<S, B, R> Service<Request<B>> for InboundService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: http_body::Body,
{
    type Response = Response<InboundBody<R>>;
    type Error = S::Error;
    type Future = InboundFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> InboundFuture<S::Future> {
        let agent = self.onus.agent();
        let head = RequestHead::of(&request);
        let kind = method_kind(head.method, head.headers);
        let procedure = procedure::of(agent, &head, kind, self.procedure.as_ref());
        let bodiless = *head.method == Method::HEAD;
        let clock = self.onus.clock();
        let bits = fastrand::u64(..);
        let inbound = agent.request_arrived(request.headers_mut(), procedure, bits, || clock.now());
        let inbound = inbound.within(scope::current().as_ref());
        if let Some(correlation) = &self.correlation {
            correlation.file(&inbound, request.headers_mut(), clock);
        }
        let timer = inbound.deadline().and_then(|deadline| clock.timer(deadline));
        let mut served = Served::new(inbound, clock, kind, bodiless);
        let scope = served.enter();
        let future = self.inner.call(request);
        drop(scope);
        InboundFuture::new(future, timer, served)
    }
}

impl<S: fmt::Debug> fmt::Debug for InboundService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboundService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
