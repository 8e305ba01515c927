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
    /// Told when a stream has ended, a connection is there, or one cannot be made; one request at a
    /// time, which tells the next where more is left.
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

    /// Something may be free: that is for who waits longest.
    fn tell(&self, state: MutexGuard<'_, State<B>>) {
        let waits = state.waiting > 0;
        drop(state);
        if waits {
            self.changed.notify_one();
        }
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
        match self.turn_http2()? {
            Turn::Now(Free::Stream(lease)) => Ok(lease),
            // Boxed: the future of every request has room for it else.
            Turn::Now(Free::Place(place)) => Box::pin(self.open_http2(place)).await,
            Turn::Later(waiting) => Box::pin(self.waited_http2(waiting)).await,
        }
    }

    /// What is free, or a place in the queue: who came first is served first.
    fn turn_http2(self: &Arc<Self>) -> Result<Turn<'_, B>, PoolError> {
        let mut state = self.http2.lock();
        if state.waiting == 0
            && let Some(free) = self.take_http2(&mut state)
        {
            return Ok(Turn::Now(free));
        }
        if state.waiting >= self.limits.pending {
            return Err(PoolError::Full { address: self.address });
        }
        state.waiting += 1;
        Ok(Turn::Later(Waiting(self)))
    }

    fn take_http2(self: &Arc<Self>, state: &mut State<B>) -> Option<Free<'_, B>> {
        if let Some(connection) = state.room(self.limits.streams) {
            return Some(Free::Stream(connection.lease(self)));
        }
        let may_connect = state.may_connect(self.limits.http2_connections);
        state.connecting |= may_connect;
        may_connect.then(|| Free::Place(Connecting(self)))
    }

    async fn waited_http2(
        self: &Arc<Self>,
        waiting: Waiting<'_, B>,
    ) -> Result<Lease<B>, PoolError> {
        let latest = Instant::now() + self.limits.connect;
        loop {
            let changed = timeout_at(latest, self.http2.changed.notified()).await;
            let free = self.take_http2(&mut self.http2.lock());
            match free {
                Some(Free::Stream(lease)) => return Ok(lease),
                Some(Free::Place(place)) => {
                    // It waits for nobody else from here on.
                    drop(waiting);
                    return self.open_http2(place).await;
                }
                None if changed.is_err() => return Err(self.without_stream()),
                None => {}
            }
        }
    }

    /// Why there was no stream in time: where there is no connection at all, that is why.
    fn without_stream(&self) -> PoolError {
        let address = self.address;
        match self.http2.lock().connections.is_empty() {
            true => PoolError::ConnectTimeout { address },
            false => PoolError::Full { address },
        }
    }

    /// Makes a connection, and takes its first stream.
    async fn open_http2(self: &Arc<Self>, place: Connecting<'_, B>) -> Result<Lease<B>, PoolError> {
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
                    endpoint.http2.tell(endpoint.http2.lock());
                }
            }
            ended
        }));
        let mut state = self.http2.lock();
        state.made += 1;
        let number = state.made;
        let streams = Arc::default();
        let connection = Connection { number, sender, streams, allowed, idle: 0 };
        let lease = connection.lease(self);
        state.connections.push(connection);
        drop(state);
        drop(place);
        Ok(lease)
    }
}

impl<B> State<B> {
    /// The first connection that has room for a stream.
    fn room(&self, streams_max: usize) -> Option<&Connection<B>> {
        self.connections.iter().find(|connection| {
            let max = connection.allowed.load(Ordering::Relaxed).min(streams_max);
            connection.streams.load(Ordering::Relaxed) < max && !connection.sender.is_closed()
        })
    }

    /// Whether another connection may be made.
    fn may_connect(&mut self, max: usize) -> bool {
        self.connections.retain(|connection| !connection.sender.is_closed());
        !self.connecting && self.connections.len() < max
    }
}

impl<B> Connection<B> {
    fn lease(&self, endpoint: &Arc<Endpoint<B>>) -> Lease<B> {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Lease {
            sender: self.sender.clone(),
            endpoint: endpoint.clone(),
            streams: self.streams.clone(),
            number: self.number,
        }
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
        self.endpoint.http2.tell(self.endpoint.http2.lock());
    }
}

/// What a request gets that asks for a stream.
enum Turn<'a, B> {
    Now(Free<'a, B>),
    Later(Waiting<'a, B>),
}

/// What a request can have at once.
enum Free<'a, B> {
    Stream(Lease<B>),
    /// The place of a connection that is to be made.
    Place(Connecting<'a, B>),
}

/// The right to make a connection.
struct Connecting<'a, B>(&'a Endpoint<B>);

impl<B> Drop for Connecting<'_, B> {
    fn drop(&mut self) {
        let mut state = self.0.http2.lock();
        state.connecting = false;
        self.0.http2.tell(state);
    }
}

/// A request in the queue.
struct Waiting<'a, B>(&'a Endpoint<B>);

impl<B> Drop for Waiting<'_, B> {
    fn drop(&mut self) {
        let Self(endpoint) = self;
        let mut state = endpoint.http2.lock();
        state.waiting -= 1;
        // What it was told of, and did not take, is for the next; a connection has room for many.
        if state.room(endpoint.limits.streams).is_some()
            || state.may_connect(endpoint.limits.http2_connections)
        {
            endpoint.http2.tell(state);
        }
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

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::Poll;
    use std::time::Duration;

    use http_body_util::Empty;
    use tokio::net::TcpListener;

    use super::*;
    use crate::pool::PoolLimits;
    use crate::pool::dial::Dial;

    /// An instance that takes one stream at a time.
    async fn instance() -> (TcpListener, Arc<Endpoint<Empty<Bytes>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let limits = PoolLimits {
            connections: 1,
            http2_connections: 1,
            streams: 1,
            header_bytes: 1 << 10,
            pending: 10,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(10),
        };
        let dial = Dial { timeout: limits.connect, tls: None, own: [].into() };
        let address = listener.local_addr().expect("it is bound");
        (listener, Arc::new(Endpoint::new(address, dial, limits)))
    }

    async fn is_pending(future: Pin<&mut impl Future>) -> bool {
        let mut future = future;
        poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }

    #[tokio::test]
    async fn who_waits_for_a_stream_comes_before_who_asks_later() {
        let (_listener, endpoint) = instance().await;
        let held = endpoint.http2().await.unwrap();
        let (mut waits, mut next) = (pin!(endpoint.http2()), pin!(endpoint.http2()));
        assert!(is_pending(waits.as_mut()).await && is_pending(next.as_mut()).await);
        drop(held);
        let mut later = pin!(endpoint.http2());
        assert!(is_pending(later.as_mut()).await, "somebody waits");
        let lease = waits.await.unwrap();
        drop(lease);
        assert!(is_pending(later.as_mut()).await, "somebody waits");
        drop(next.await.unwrap());
        later.await.unwrap();
        assert_eq!(endpoint.http2.counts(), (1, 0, 0));
    }

    #[tokio::test]
    async fn who_goes_away_hands_on_what_it_was_told() {
        let (_listener, endpoint) = instance().await;
        let held = endpoint.http2().await.unwrap();
        let mut gone = Box::pin(endpoint.http2());
        let mut waits = pin!(endpoint.http2());
        assert!(is_pending(gone.as_mut()).await && is_pending(waits.as_mut()).await);
        drop(held);
        drop(gone);
        waits.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_connection_that_is_not_made_in_time_hears_that() {
        let (_listener, endpoint) = instance().await;
        let Turn::Now(Free::Place(making)) = endpoint.turn_http2().unwrap() else {
            panic!("nobody else connects")
        };
        let error = endpoint.http2().await.err().expect("there is none");
        assert!(matches!(error, PoolError::ConnectTimeout { .. }), "{error}");
        drop(making);
        // Where there is one, it is its streams that are missing.
        let held = endpoint.http2().await.unwrap();
        let error = endpoint.http2().await.err().expect("it is in use");
        assert!(matches!(error, PoolError::Full { .. }), "{error}");
        drop(held);
    }
}
