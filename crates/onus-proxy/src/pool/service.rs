//! The service below the outbound layer: one attempt over one connection.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::UPGRADE;
use http::request::Parts;
use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use onus::replay::{Attempt, BoxError, ReplayBody, ReplayLimits, Tape, Trail};
use tokio::time::{MissedTickBehavior, interval};
use tower_service::Service;

use super::access;
use super::body::{Lease, PoolBody};
use super::dial::Dial;
use super::endpoint::Endpoint;
use super::endpoints::{Endpoints, Target};
use super::error::{PoolError, is_unprocessed};
use super::sent::Sent;
use super::version::{frame_body, to_http1, to_http2};
use super::view::PoolView;
use super::{PoolLimits, http1, http2};
use crate::interim::count_untold;
use crate::tail::AccessLog;
use crate::tunnel::to_upgrade;

/// Connections to a callee.
pub(crate) struct Pool<B>(Arc<Shared<B>>);

struct Shared<B> {
    /// The callee, for logs.
    callee: Arc<str>,
    log: Arc<AccessLog>,
    endpoints: Endpoints<B>,
    protocol: Protocol,
    /// The memory for bodies that may have to be sent over another connection.
    replay: ReplayLimits,
    counts: PoolCounts,
}

/// How a callee is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// As the request came.
    #[default]
    AsReceived,
    Http1,
    Http2,
}

impl<B> Pool<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    /// Connections to the instances of `target`, to be made when they are needed.
    pub(crate) fn new(
        callee: &str,
        log: &Arc<AccessLog>,
        target: Target,
        protocol: Protocol,
        dial: Dial,
        limits: PoolLimits,
        replay: ReplayLimits,
    ) -> Self {
        let endpoints = Endpoints::new(target, dial, limits);
        let (callee, log, counts) = (callee.into(), log.clone(), PoolCounts::default());
        let shared = Arc::new(Shared { callee, log, endpoints, protocol, replay, counts });
        tokio::spawn(sweep(Arc::downgrade(&shared), limits.idle / 2));
        if shared.endpoints.have_name() {
            tokio::spawn(look_up(Arc::downgrade(&shared)));
        }
        Self(shared)
    }

    /// Sends a request over a connection that is free, or a new one. The request is boxed, because it
    /// is large and each future that has it on the way moves it twice.
    pub(crate) async fn send(
        self,
        request: Box<Request<B>>,
        attempt: Attempt,
        trail: Option<Arc<Trail>>,
    ) -> Result<Response<PoolBody<B>>, PoolError> {
        let mut entry = access::Entry::begin(&self.0.log, &self.0.callee, &request, attempt);
        let mut awaited = Awaited(Some(&self.0.counts.given_up));
        let sent = self.0.send(request, trail.as_deref(), &mut entry).await;
        awaited.0 = None;
        match &sent {
            Err(PoolError::Full { .. } | PoolError::Loop { .. }) => {
                count(&self.0.counts.refused);
            }
            Err(
                PoolError::Connect { .. }
                | PoolError::ConnectTimeout { .. }
                | PoolError::Resolve { .. },
            ) => count(&self.0.counts.unreachable),
            Err(error @ PoolError::Exchange { .. }) if !error.is_of_request() => {
                count(&self.0.counts.broken);
            }
            Err(PoolError::Exchange { .. }) | Ok(_) => {}
        }
        match entry {
            Some(entry) => entry.end(sent),
            None => sent,
        }
    }

    /// What there is of connections, and what happened to them.
    pub(crate) fn view(&self) -> PoolView {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.0.counts;
        let mut view = PoolView {
            resends: read(&counts.resends),
            unreachable: read(&counts.unreachable),
            refused: read(&counts.refused),
            broken: read(&counts.broken),
            given_up: read(&counts.given_up),
            interims_untold: read(&counts.interims_untold),
            ..self.0.endpoints.view()
        };
        view.callee = self.0.callee.to_string();
        view
    }
}

impl<B> Shared<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    async fn send(
        &self,
        mut request: Box<Request<B>>,
        trail: Option<&Trail>,
        entry: &mut Option<access::Entry>,
    ) -> Result<Response<PoolBody<B>>, PoolError> {
        let endpoint = self.endpoints.pick(trail).await?;
        note(entry, endpoint.address);
        let is_http2 = match self.protocol {
            Protocol::AsReceived => request.version() == Version::HTTP_2,
            Protocol::Http1 => false,
            Protocol::Http2 => true,
        };
        // A connection that is to be something else cannot be shared.
        if is_http2 && !request.headers().contains_key(UPGRADE) {
            to_http2(&mut request, endpoint.address);
            // Boxed: it is large, and the future of every request has room for it else.
            Box::pin(self.send_http2(&endpoint, *request, trail, entry)).await
        } else {
            if request.version() != Version::HTTP_11 {
                count_untold(&mut request, &self.counts.interims_untold);
            }
            to_upgrade(&mut request);
            to_http1(&mut request, endpoint.address);
            frame_body(&mut request);
            let request = request.map(|body| Sent::Plain { body });
            self.send_http1(&endpoint, request, trail).await
        }
    }

    async fn send_http1(
        &self,
        endpoint: &Arc<Endpoint<B>>,
        request: Request<Sent<B>>,
        trail: Option<&Trail>,
    ) -> Result<Response<PoolBody<B>>, PoolError> {
        let mut lease = noted(endpoint, endpoint.http1().await)?;
        let mut error = match lease.sender.try_send_request(request).await {
            Ok(response) => return Ok(arrived(endpoint, lease, response)),
            Err(error) => error,
        };
        match error.take_message() {
            // The connection was closed before anything was written to it.
            Some(request) if lease.reused && self.may_resend(trail) => {
                drop(lease);
                // Boxed: the future of every request has room for it else.
                Box::pin(send_on_fresh(endpoint, request)).await
            }
            Some(_) | None => Err(exchange(endpoint, error.into_error())),
        }
    }

    async fn send_http2(
        &self,
        endpoint: &Arc<Endpoint<B>>,
        request: Request<B>,
        trail: Option<&Trail>,
        entry: &mut Option<access::Entry>,
    ) -> Result<Response<PoolBody<B>>, PoolError> {
        let (head, body) = request.into_parts();
        let tape = (!body.is_end_stream()).then(|| Tape::new(body, &self.replay));
        let first = again(&head, tape.as_ref(), Attempt::FIRST);
        let first = first.unwrap_or_else(|| unreplayable(&head));
        let lease = stream(endpoint).await?;
        let lost = match send_on_stream(endpoint, lease, first).await {
            Ok(response) => return Ok(response),
            Err(lost) => lost,
        };
        let second = || again(&head, tape.as_ref(), Attempt::FIRST.next());
        let second = if lost.unprocessed { second() } else { None };
        let Some(second) = second.filter(|_| self.may_resend(trail)) else {
            return Err(lost.error);
        };
        let elsewhere = async {
            // Who refuses a stream is full, or goes away.
            let endpoint = &self.endpoints.pick(trail).await?;
            note(entry, endpoint.address);
            let lease = stream(endpoint).await?;
            send_on_stream(endpoint, lease, second).await.map_err(|lost| lost.error)
        };
        Box::pin(elsewhere).await
    }

    /// Whether a request may be sent over a second connection; once for a call.
    fn may_resend(&self, trail: Option<&Trail>) -> bool {
        let may = trail.is_none_or(Trail::take_resend);
        if may {
            count(&self.counts.resends);
        }
        may
    }
}

/// The line of an attempt, where it is written, has the instance that is asked last.
fn note(entry: &mut Option<access::Entry>, instance: SocketAddr) {
    if let Some(entry) = entry {
        entry.goes_to(instance);
    }
}

/// Why a stream gave no answer, and whether the callee has provably not worked on the request.
struct Lost {
    error: PoolError,
    unprocessed: bool,
}

/// The head of an answer over HTTP/1.1 has arrived.
fn arrived<B: Send + 'static>(
    endpoint: &Endpoint<B>,
    lease: http1::Lease<B>,
    response: Response<Incoming>,
) -> Response<PoolBody<B>> {
    endpoint.works();
    response.map(|body| PoolBody::new(body, Lease::Http1(lease)))
}

async fn send_on_fresh<B>(
    endpoint: &Arc<Endpoint<B>>,
    request: Request<Sent<B>>,
) -> Result<Response<PoolBody<B>>, PoolError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let mut lease = noted(endpoint, endpoint.fresh_http1().await)?;
    match lease.sender.try_send_request(request).await {
        Ok(response) => Ok(arrived(endpoint, lease, response)),
        Err(error) => Err(exchange(endpoint, error.into_error())),
    }
}

async fn stream<B>(endpoint: &Arc<Endpoint<B>>) -> Result<http2::Lease<B>, PoolError>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    noted(endpoint, endpoint.http2().await)
}

async fn send_on_stream<B>(
    endpoint: &Arc<Endpoint<B>>,
    mut lease: http2::Lease<B>,
    request: Request<Sent<B>>,
) -> Result<Response<PoolBody<B>>, Lost>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    match lease.sender.try_send_request(request).await {
        Ok(response) => {
            endpoint.works();
            Ok(response.map(|body| PoolBody::new(body, Lease::Http2(lease))))
        }
        Err(mut error) => {
            // What hyper gives back was never written.
            let unwritten = error.take_message().is_some();
            let error = error.into_error();
            let unprocessed = unwritten || is_unprocessed(&error);
            if unprocessed {
                lease.retire();
            }
            Err(Lost { error: exchange(endpoint, error), unprocessed })
        }
    }
}

/// Notes whether an instance can be reached.
fn noted<B, T>(endpoint: &Endpoint<B>, leased: Result<T, PoolError>) -> Result<T, PoolError> {
    match &leased {
        Err(PoolError::Connect { .. } | PoolError::ConnectTimeout { .. }) => endpoint.fails(),
        Err(
            PoolError::Resolve { .. }
            | PoolError::Loop { .. }
            | PoolError::Full { .. }
            | PoolError::Exchange { .. },
        )
        | Ok(_) => {}
    }
    leased
}

fn exchange<B>(endpoint: &Endpoint<B>, source: hyper::Error) -> PoolError {
    PoolError::Exchange { address: endpoint.address, source }
}

/// The request with its body from the start; `None` where that is gone.
fn again<B: Body>(
    head: &Parts,
    tape: Option<&Tape<B>>,
    attempt: Attempt,
) -> Option<Request<Sent<B>>> {
    let body = match tape {
        None => Sent::Empty,
        Some(tape) => Sent::Kept { body: tape.attempt(attempt).ok()? },
    };
    Some(Request::from_parts(head.clone(), body))
}

/// Not reached: nothing has been read of a new tape.
fn unreplayable<B>(head: &Parts) -> Request<Sent<B>> {
    Request::from_parts(head.clone(), Sent::Empty)
}

/// Closes old connections, until the pool is gone.
async fn sweep<B>(pool: Weak<Shared<B>>, every: Duration) {
    let mut sweeps = interval(every.max(Duration::from_millis(10)));
    sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        sweeps.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        pool.endpoints.sweep();
    }
}

/// Asks where the instances are, until the pool is gone. A resolver that is slow holds up nothing
/// else.
async fn look_up<B>(pool: Weak<Shared<B>>) {
    let mut lookups = interval(RESOLVE_EVERY);
    lookups.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        lookups.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        // Whoever needs an address hears of it.
        let _ = pool.endpoints.resolve(RESOLVE_EVERY / 2).await;
    }
}

impl<B> Service<Request<ReplayBody<B>>> for Pool<ReplayBody<B>>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<PoolBody<ReplayBody<B>>>;
    type Error = PoolError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, PoolError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), PoolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<B>>) -> Self::Future {
        let (attempt, trail) = (request.body().attempt(), request.body().trail().cloned());
        // Boxed, because the futures of hyper's connections have no name.
        Box::pin(self.clone().send(Box::new(request), attempt, trail))
    }
}

impl<B> Clone for Pool<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What happened to the requests of a pool.
#[derive(Debug, Default)]
struct PoolCounts {
    resends: AtomicU64,
    unreachable: AtomicU64,
    refused: AtomicU64,
    broken: AtomicU64,
    given_up: AtomicU64,
    interims_untold: Arc<AtomicU64>,
}

/// An attempt that somebody waits for; where it is dropped before it has ended, that is counted.
struct Awaited<'a>(Option<&'a AtomicU64>);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.into_iter().for_each(count);
    }
}

/// How often the resolver is asked where the instances are.
const RESOLVE_EVERY: Duration = Duration::from_secs(5);
