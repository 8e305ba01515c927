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

    fn put_idle(&self, sender: SendRequest<Sent<B>>) {
        let since = self.sweep.load(Ordering::Relaxed);
        let mut state = self.lock();
        state.idle.push(Idle { sender, since });
        self.tell(state);
    }

    fn closed(&self) {
        let mut state = self.lock();
        state.open -= 1;
        self.tell(state);
    }

    /// Something is free: that is for who waits longest.
    fn tell(&self, state: MutexGuard<'_, State<B>>) {
        let waits = state.waiting > 0;
        drop(state);
        if waits {
            self.freed.notify_one();
        }
    }
}

impl<B> State<B> {
    /// What is free: a connection, else a place for another one.
    fn take(&mut self, max: usize) -> Option<Free<B>> {
        while let Some(idle) = self.idle.pop() {
            if idle.sender.is_ready() {
                return Some(Free::Connection(idle.sender));
            }
        }
        let has_place = self.open < max;
        self.open += usize::from(has_place);
        has_place.then_some(Free::Place)
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
        match self.turn_http1()? {
            Turn::Now(Free::Connection(sender)) => Ok(lease(sender, true)),
            // Boxed: the future of every request has room for it else.
            Turn::Now(Free::Place) => Ok(lease(Box::pin(self.open_http1()).await?, false)),
            Turn::Later(waiting) => Box::pin(self.waited_http1(waiting)).await,
        }
    }

    /// What is free, or a place in the queue: who came first is served first.
    fn turn_http1(&self) -> Result<Turn<'_, B>, PoolError> {
        let mut state = self.http1.lock();
        if state.waiting == 0
            && let Some(free) = state.take(self.limits.connections)
        {
            return Ok(Turn::Now(free));
        }
        if state.waiting >= self.limits.pending {
            return Err(PoolError::Full { address: self.address });
        }
        state.waiting += 1;
        Ok(Turn::Later(Waiting(self)))
    }

    /// The next connection that is free, or a new one in its place.
    async fn waited_http1(
        self: &Arc<Self>,
        waiting: Waiting<'_, B>,
    ) -> Result<Lease<B>, PoolError> {
        let lease = |sender, reused| Lease { sender, endpoint: self.clone(), reused };
        let latest = Instant::now() + self.limits.connect;
        loop {
            let freed = timeout_at(latest, self.http1.freed.notified()).await;
            let free = self.http1.lock().take(self.limits.connections);
            match free {
                Some(Free::Connection(sender)) => return Ok(lease(sender, true)),
                Some(Free::Place) => {
                    // It waits for nobody else from here on.
                    drop(waiting);
                    return Ok(lease(self.open_http1().await?, false));
                }
                None if freed.is_err() => return Err(PoolError::Full { address: self.address }),
                None => {}
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

/// What a request gets that asks for a connection.
enum Turn<'a, B> {
    Now(Free<B>),
    Later(Waiting<'a, B>),
}

/// What a request can have at once.
enum Free<B> {
    /// A connection that is idle.
    Connection(SendRequest<Sent<B>>),
    /// The place of a connection that is to be made.
    Place,
}

/// A request in the queue.
struct Waiting<'a, B>(&'a Endpoint<B>);

impl<B> Drop for Waiting<'_, B> {
    fn drop(&mut self) {
        let Self(endpoint) = self;
        let mut state = endpoint.http1.lock();
        state.waiting -= 1;
        // What it was told of, and did not take, is for the next.
        if !state.idle.is_empty() || state.open < endpoint.limits.connections {
            endpoint.http1.tell(state);
        }
    }
}

/// How long the rest of a request may take to be sent after it was answered.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// A connection is old when it was idle in so many whole sweeps.
const IDLE_SWEEPS: u32 = 2;

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use http_body_util::Empty;
    use tokio::net::TcpListener;

    use super::*;
    use crate::pool::PoolLimits;
    use crate::pool::dial::Dial;

    /// An instance to which one connection may be made.
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

    #[tokio::test]
    async fn who_waits_for_a_connection_comes_before_who_asks_later() {
        let (_listener, endpoint) = instance().await;
        let mut held = endpoint.http1().await.unwrap();
        let mut waits = pin!(endpoint.http1());
        assert!(poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_pending())).await);
        held.sender.ready().await.unwrap();
        held.give_back();
        let mut later = pin!(endpoint.http1());
        assert!(poll_fn(|cx| Poll::Ready(later.as_mut().poll(cx).is_pending())).await);
        let lease = waits.await.unwrap();
        assert!(lease.reused);
        // One that breaks makes room for another.
        drop(lease);
        assert!(!later.await.unwrap().reused);
        assert_eq!(endpoint.http1.counts().2, 0);
    }
}
