//! HTTP/1.1 connections to one instance: one request at a time on each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use onus::replay::BoxError;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use super::endpoint::Endpoint;
use super::error::PoolError;
use super::sent::Sent;
use crate::connection::http1_buffer;

/// The HTTP/1.1 connections to one instance.
pub(super) struct Http1<B> {
    state: Mutex<State<B>>,
    /// Told when a connection is free, or a place for one.
    freed: Notify,
    /// Raised by each sweep.
    sweep: AtomicU32,
}

struct State<B> {
    /// Connections that wait for a request; the one used last is at the end, so that the others can
    /// grow old.
    idle: Vec<Idle<B>>,
    /// Connections that are there or are being made.
    open: usize,
    /// Requests that wait.
    waiting: usize,
}

struct Idle<B> {
    sender: SendRequest<Sent<B>>,
    /// The sweep after which it became idle.
    since: u32,
}

/// A connection that is in use.
pub(crate) struct Lease<B> {
    pub(super) sender: SendRequest<Sent<B>>,
    endpoint: Arc<Endpoint<B>>,
    /// Whether it was used before.
    pub(super) reused: bool,
}

impl<B> Http1<B> {
    pub(super) fn new() -> Self {
        let state = State { idle: Vec::new(), open: 0, waiting: 0 };
        Self { state: Mutex::new(state), freed: Notify::new(), sweep: AtomicU32::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes connections that were not used since the sweep before the last one.
    pub(super) fn sweep(&self) {
        let now = self.sweep.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let old: Vec<_> = {
            let mut state = self.lock();
            let is_old = |idle: &mut Idle<B>| {
                idle.sender.is_closed() || now.wrapping_sub(idle.since) > IDLE_SWEEPS
            };
            state.idle.extract_if(.., is_old).collect()
        };
        drop(old);
    }

    /// Connections, those of them that are idle, and requests that wait for one.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let state = self.lock();
        (state.open, state.idle.len(), state.waiting)
    }

    fn take_idle(&self) -> Option<SendRequest<Sent<B>>> {
        let mut state = self.lock();
        while let Some(idle) = state.idle.pop() {
            if idle.sender.is_ready() {
                return Some(idle.sender);
            }
        }
        None
    }

    /// A place for another connection, if there is one.
    fn take_place(&self, max: usize) -> bool {
        let mut state = self.lock();
        let is_free = state.open < max;
        state.open += usize::from(is_free);
        is_free
    }

    fn put_idle(&self, sender: SendRequest<Sent<B>>) {
        let since = self.sweep.load(Ordering::Relaxed);
        let mut state = self.lock();
        state.idle.push(Idle { sender, since });
        let waits = state.waiting > 0;
        drop(state);
        if waits {
            self.freed.notify_one();
        }
    }

    fn closed(&self) {
        self.lock().open -= 1;
        self.freed.notify_one();
    }
}

impl<B> Endpoint<B>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// A connection for one request: one that is there, else a new one, else the next that is free.
    pub(super) async fn http1(self: &Arc<Self>) -> Result<Lease<B>, PoolError> {
        let lease = |sender, reused| Lease { sender, endpoint: self.clone(), reused };
        if let Some(sender) = self.http1.take_idle() {
            return Ok(lease(sender, true));
        }
        if self.http1.take_place(self.limits.connections) {
            return Ok(lease(Box::pin(self.open_http1()).await?, false));
        }
        // Boxed, like what opens a connection: the future of every request has room for it else.
        Box::pin(self.waited_http1()).await
    }

    /// The next connection that is free, or a new one in its place.
    async fn waited_http1(self: &Arc<Self>) -> Result<Lease<B>, PoolError> {
        let lease = |sender, reused| Lease { sender, endpoint: self.clone(), reused };
        let _waiting = Waiting::start(self)?;
        let latest = Instant::now() + self.limits.connect;
        loop {
            let freed = timeout_at(latest, self.http1.freed.notified()).await;
            if let Some(sender) = self.http1.take_idle() {
                return Ok(lease(sender, true));
            }
            if self.http1.take_place(self.limits.connections) {
                return Ok(lease(Box::pin(self.open_http1()).await?, false));
            }
            if freed.is_err() {
                return Err(PoolError::Full { address: self.address });
            }
        }
    }

    /// A connection that nobody has used. It takes a place even where all are taken: it replaces one
    /// that was found closed.
    pub(super) async fn fresh_http1(self: &Arc<Self>) -> Result<Lease<B>, PoolError> {
        self.http1.lock().open += 1;
        let sender = Box::pin(self.open_http1()).await?;
        Ok(Lease { sender, endpoint: self.clone(), reused: false })
    }

    /// Makes a connection in the place that was taken.
    async fn open_http1(self: &Arc<Self>) -> Result<SendRequest<Sent<B>>, PoolError> {
        let place = Place(Arc::downgrade(self));
        let stream = self.dial.connect(self.address, false).await?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(http1_buffer(self.limits.header_bytes))
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|source| PoolError::Exchange { address: self.address, source })?;
        tokio::spawn(async move {
            let _place = place;
            // How it ends is seen by the request on it, or by nobody.
            let _ = connection.with_upgrades().await;
        });
        Ok(sender)
    }
}

impl<B: Send + 'static> Lease<B> {
    /// The answer has been read to its end: the connection can be used again, perhaps as soon as the
    /// rest of the request is gone.
    pub(super) fn give_back(self) {
        let Self { mut sender, endpoint, .. } = self;
        if sender.is_ready() {
            endpoint.http1.put_idle(sender);
        } else if !sender.is_closed() {
            tokio::spawn(async move {
                if let Ok(Ok(())) = timeout(SETTLE_MAX, sender.ready()).await {
                    endpoint.http1.put_idle(sender);
                }
            });
        }
    }
}

/// The place of a connection, until it is closed. It keeps no instance: one that has left the list
/// ends with its last request, and what is idle is closed with it.
struct Place<B>(Weak<Endpoint<B>>);

impl<B> Drop for Place<B> {
    fn drop(&mut self) {
        if let Some(endpoint) = self.0.upgrade() {
            endpoint.http1.closed();
        }
    }
}

/// A request in the queue.
struct Waiting<'a, B>(&'a Http1<B>);

impl<'a, B> Waiting<'a, B> {
    fn start(endpoint: &'a Endpoint<B>) -> Result<Self, PoolError> {
        let mut state = endpoint.http1.lock();
        if state.waiting >= endpoint.limits.pending {
            return Err(PoolError::Full { address: endpoint.address });
        }
        state.waiting += 1;
        drop(state);
        Ok(Self(&endpoint.http1))
    }
}

impl<B> Drop for Waiting<'_, B> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.waiting -= 1;
        // What it was told of, and did not take, is for the next.
        let pass_on = state.waiting > 0 && !state.idle.is_empty();
        drop(state);
        if pass_on {
            self.0.freed.notify_one();
        }
    }
}

/// How long the rest of a request may take to be sent after it was answered.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// A connection is old when it was idle in so many whole sweeps.
const IDLE_SWEEPS: u32 = 2;
