//! HTTP/2 connections to one instance: few, shared by many requests.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body::Body;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use onus::replay::BoxError;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::endpoint::Endpoint;
use super::error::PoolError;
use super::sent::Sent;

/// The HTTP/2 connections to one instance.
pub(super) struct Http2<B> {
    state: Mutex<State<B>>,
    /// Told when a stream has ended, a connection is there, or one cannot be made.
    changed: Notify,
    /// Streams on a connection that the callee allowed last.
    allowed: AtomicUsize,
}

struct State<B> {
    connections: Vec<Connection<B>>,
    /// Whether one is being made; others wait for it.
    connecting: bool,
    waiting: usize,
    /// Counts connections, to tell them apart.
    made: u64,
}

struct Connection<B> {
    number: u64,
    sender: SendRequest<Sent<B>>,
    streams: Arc<AtomicUsize>,
    /// Streams that the callee allows.
    allowed: Arc<AtomicUsize>,
    /// Sweeps in which it had no stream.
    idle: u32,
}

/// A stream on a connection.
pub(crate) struct Lease<B> {
    pub(super) sender: SendRequest<Sent<B>>,
    endpoint: Arc<Endpoint<B>>,
    streams: Arc<AtomicUsize>,
    number: u64,
}

impl<B> Http2<B> {
    pub(super) fn new() -> Self {
        let state = State { connections: Vec::new(), connecting: false, waiting: 0, made: 0 };
        let allowed = AtomicUsize::new(STREAMS_ASSUMED);
        Self { state: Mutex::new(state), changed: Notify::new(), allowed }
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections, streams on them, and requests that wait for one.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let state = self.lock();
        let streams = state.connections.iter().map(|one| one.streams.load(Ordering::Relaxed));
        (state.connections.len(), streams.sum(), state.waiting)
    }

    /// Closes connections that had no stream since the sweep before the last one.
    pub(super) fn sweep(&self) {
        let old: Vec<_> = {
            let mut state = self.lock();
            let is_old = |connection: &mut Connection<B>| {
                let is_idle = connection.streams.load(Ordering::Relaxed) == 0;
                connection.idle = if is_idle { connection.idle + 1 } else { 0 };
                connection.sender.is_closed() || connection.idle > IDLE_SWEEPS
            };
            state.connections.extract_if(.., is_old).collect()
        };
        drop(old);
    }
}

impl<B> Endpoint<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    /// A stream: on the first connection that has room, else on a new one, else on the first that
    /// gets room. What goes over one connection goes out together, and comes in together.
    pub(super) async fn http2(self: &Arc<Self>) -> Result<Lease<B>, PoolError> {
        if let Some(lease) = self.stream() {
            return Ok(lease);
        }
        // Boxed: the future of every request has room for it else.
        Box::pin(self.waited_http2()).await
    }

    async fn waited_http2(self: &Arc<Self>) -> Result<Lease<B>, PoolError> {
        let latest = Instant::now() + self.limits.connect;
        let mut waiting = None;
        loop {
            // Told of what happens from here on.
            let changed = self.http2.changed.notified();
            if let Some(lease) = self.stream() {
                return Ok(lease);
            }
            if let Some(place) = Connecting::take(self) {
                self.open_http2(place).await?;
                continue;
            }
            if waiting.is_none() {
                waiting = Some(Waiting::start(self)?);
            }
            if timeout_at(latest, changed).await.is_err() {
                return Err(PoolError::Full { address: self.address });
            }
        }
    }

    fn stream(self: &Arc<Self>) -> Option<Lease<B>> {
        let state = self.http2.lock();
        let has_room = |connection: &&Connection<B>| {
            let max = connection.allowed.load(Ordering::Relaxed).min(self.limits.streams);
            connection.streams.load(Ordering::Relaxed) < max && !connection.sender.is_closed()
        };
        let connection = state.connections.iter().find(has_room)?;
        connection.streams.fetch_add(1, Ordering::Relaxed);
        Some(Lease {
            sender: connection.sender.clone(),
            endpoint: self.clone(),
            streams: connection.streams.clone(),
            number: connection.number,
        })
    }

    async fn open_http2(self: &Arc<Self>, place: Connecting<'_, B>) -> Result<(), PoolError> {
        let stream = self.dial.connect(self.address, true).await?;
        let (sender, mut connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(u32::try_from(self.limits.header_bytes).unwrap_or(u32::MAX))
            // Until the callee has said how many streams it allows, requests wait here for it: it
            // is to refuse none.
            .initial_max_send_streams(0)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|source| PoolError::Exchange { address: self.address, source })?;
        let allowed = Arc::new(AtomicUsize::new(self.http2.allowed.load(Ordering::Relaxed)));
        let (told, endpoint) = (allowed.clone(), Arc::downgrade(self));
        // How it ends is seen by the requests on it, or by nobody.
        tokio::spawn(poll_fn(move |cx| {
            let ended = Pin::new(&mut connection).poll(cx).map(drop);
            let allows = connection.current_max_send_streams();
            if allows > 0 && told.load(Ordering::Relaxed) != allows {
                told.store(allows, Ordering::Relaxed);
                if let Some(endpoint) = endpoint.upgrade() {
                    endpoint.http2.allowed.store(allows, Ordering::Relaxed);
                    endpoint.http2.changed.notify_waiters();
                }
            }
            ended
        }));
        let mut state = self.http2.lock();
        state.made += 1;
        let number = state.made;
        let streams = Arc::new(AtomicUsize::new(0));
        state.connections.push(Connection { number, sender, streams, allowed, idle: 0 });
        drop(state);
        drop(place);
        Ok(())
    }
}

impl<B> Lease<B> {
    /// The connection takes no further request: the callee goes away.
    pub(super) fn retire(&self) {
        let mut state = self.endpoint.http2.lock();
        let retired = state.connections.iter().position(|one| one.number == self.number);
        let retired = retired.map(|at| state.connections.swap_remove(at));
        drop(state);
        drop(retired);
    }
}

impl<B> Drop for Lease<B> {
    fn drop(&mut self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
        if self.endpoint.http2.lock().waiting > 0 {
            self.endpoint.http2.changed.notify_one();
        }
    }
}

/// The right to make a connection.
struct Connecting<'a, B>(&'a Http2<B>);

impl<'a, B> Connecting<'a, B> {
    fn take(endpoint: &'a Endpoint<B>) -> Option<Self> {
        let mut state = endpoint.http2.lock();
        state.connections.retain(|connection| !connection.sender.is_closed());
        if state.connecting || state.connections.len() >= endpoint.limits.http2_connections {
            return None;
        }
        state.connecting = true;
        Some(Self(&endpoint.http2))
    }
}

impl<B> Drop for Connecting<'_, B> {
    fn drop(&mut self) {
        self.0.lock().connecting = false;
        // A connection has room for many.
        self.0.changed.notify_waiters();
    }
}

/// A request in the queue.
struct Waiting<'a, B>(&'a Http2<B>);

impl<'a, B> Waiting<'a, B> {
    fn start(endpoint: &'a Endpoint<B>) -> Result<Self, PoolError> {
        let mut state = endpoint.http2.lock();
        if state.waiting >= endpoint.limits.pending {
            return Err(PoolError::Full { address: endpoint.address });
        }
        state.waiting += 1;
        drop(state);
        Ok(Self(&endpoint.http2))
    }
}

impl<B> Drop for Waiting<'_, B> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

/// Streams that a connection is taken to have room for before any callee has said how many it
/// allows: as many as the standard recommends at least.
const STREAMS_ASSUMED: usize = 100;
/// As much as a stream may have under way; less would slow large bodies down over distance.
const STREAM_WINDOW: u32 = 1 << 20;
/// All streams of a connection together.
const CONNECTION_WINDOW: u32 = 4 << 20;

/// A connection is old when it was idle in so many whole sweeps.
const IDLE_SWEEPS: u32 = 2;
