//! Interim answers (1xx) on their way to a client of HTTP/1.1.
//!
//! hyper's client tells of those that a callee sends, and hyper's server can send none. So they are
//! written beneath the server, between its own bytes: it flushes when it has nothing more to write,
//! and what it writes once the answer is ready begins with the head of that.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Request, StatusCode};
use hyper::ext::on_informational;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::hop;

/// What became of interim answers.
#[derive(Debug, Default)]
pub(crate) struct InterimCounts {
    /// Written to their client.
    pub(crate) passed: AtomicU64,
    /// Dropped: their client was slow to read, or they came when nobody waited for them any more.
    pub(crate) dropped: AtomicU64,
}

/// The interim answers to the requests of one connection.
pub(crate) struct Interims {
    /// Counts the requests. Only the task of the connection looks at this and at the phase.
    request: AtomicU64,
    /// How far the last of them is: [`CLOSED`], [`OPEN`] or [`ENDING`].
    phase: AtomicU8,
    /// Whether something waits to be written.
    wait: AtomicBool,
    waiting: Mutex<Waiting>,
    /// The most bytes that wait.
    max: usize,
    counts: Arc<InterimCounts>,
}

/// No interim answer may be written: no request is under way, or the head of its answer is.
const CLOSED: u8 = 0;
/// A request waits for its answer.
const OPEN: u8 = 1;
/// The answer is ready, and its head is what the server writes next.
const ENDING: u8 = 2;

/// Heads that wait to be written.
#[derive(Default)]
struct Waiting {
    /// The request that they are of.
    request: u64,
    count: u64,
    heads: BytesMut,
    /// The task of the connection.
    task: Option<Waker>,
}

impl Interims {
    pub(crate) fn new(max: usize, counts: Arc<InterimCounts>) -> Arc<Self> {
        Arc::new(Self {
            request: AtomicU64::new(0),
            phase: AtomicU8::new(CLOSED),
            wait: AtomicBool::new(false),
            waiting: Mutex::default(),
            max,
            counts,
        })
    }

    /// The next request of the connection has arrived: whoever sends it on hears interim answers to
    /// it from now, however often it is sent.
    pub(crate) fn open<B>(self: &Arc<Self>, request: &mut Request<B>) -> Arc<Self> {
        let number = self.next();
        let interims = self.clone();
        on_informational(request, move |answer| {
            interims.hear(number, answer.status(), answer.headers());
        });
        self.clone()
    }

    fn next(&self) -> u64 {
        let number = self.request.load(Ordering::Relaxed) + 1;
        self.request.store(number, Ordering::Relaxed);
        self.phase.store(OPEN, Ordering::Relaxed);
        number
    }

    /// The answer is ready.
    pub(crate) fn end(&self) {
        self.phase.store(ENDING, Ordering::Relaxed);
    }

    /// A callee has sent an interim answer.
    fn hear(&self, request: u64, status: StatusCode, headers: &HeaderMap) {
        // The server says it itself, when the body is asked for.
        if status == StatusCode::CONTINUE {
            return;
        }
        let head = head(status, headers);
        let mut waiting = self.lock();
        let dropped = waiting.add(request, &head, self.max);
        self.wait.store(true, Ordering::Release);
        let task = waiting.task.clone();
        drop(waiting);
        self.counts.dropped.fetch_add(dropped, Ordering::Relaxed);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Takes what waits, with its request and how many there are.
    fn take(&self) -> Option<(u64, u64, Bytes)> {
        let mut waiting = self.lock();
        if waiting.count == 0 {
            self.wait.store(false, Ordering::Relaxed);
            return None;
        }
        let count = std::mem::take(&mut waiting.count);
        Some((waiting.request, count, std::mem::take(&mut waiting.heads).freeze()))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Interims {
    fn drop(&mut self) {
        let waiting = self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner);
        let left = waiting.count;
        self.counts.dropped.fetch_add(left, Ordering::Relaxed);
    }
}

impl Waiting {
    /// Adds a head where there is room, and says how many heads are lost. Whatever is still heard of
    /// an earlier request comes from an attempt that nobody waited for.
    fn add(&mut self, request: u64, head: &[u8], max: usize) -> u64 {
        let mut lost = 0;
        if self.request < request {
            lost = std::mem::take(&mut self.count);
            self.heads.clear();
            self.request = request;
        }
        if self.request > request || self.heads.len() + head.len() > max {
            return lost + 1;
        }
        self.heads.extend_from_slice(head);
        self.count += 1;
        lost
    }
}

/// An interim answer as it is written: without what was for the last connection, without a body, and
/// without a word of Onus, which is for final answers.
fn head(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let mut headers = headers.clone();
    hop::strip(&mut headers);
    headers.remove(CONTENT_LENGTH);
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    for (name, value) in headers.iter().filter(|(name, _)| !name.as_str().starts_with(ONUS)) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Counts the interim answers to a request whose client cannot be told any: it speaks HTTP/1.0, which
/// has none, or HTTP/2, where hyper's server can send none.
pub(crate) fn count_untold<B>(request: &mut Request<B>, count: &Arc<AtomicU64>) {
    let count = count.clone();
    on_informational(request, move |answer| {
        if answer.status() != StatusCode::CONTINUE {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// A connection of a client to which interim answers are written beside what the server writes.
pub(crate) struct Interjecting<S> {
    stream: S,
    interims: Arc<Interims>,
    /// What is left of interim answers that are being written.
    rest: Bytes,
    /// Whether the server has written nothing since it had nothing more to write.
    is_between: bool,
    /// The task that polls, as it is known to whoever hears something.
    task: Option<Waker>,
}

impl<S: AsyncWrite + Unpin> Interjecting<S> {
    pub(crate) fn new(stream: S, interims: Arc<Interims>) -> Self {
        Self { stream, interims, rest: Bytes::new(), is_between: true, task: None }
    }

    fn phase(&self) -> u8 {
        self.interims.phase.load(Ordering::Relaxed)
    }

    fn waits(&self) -> bool {
        self.interims.wait.load(Ordering::Acquire)
    }

    /// Comes before what the server writes for a request whose answer has not begun.
    fn poll_before(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Else the server is in the middle of something, and what waits, waits for its end.
        if self.is_between && self.waits() {
            ready!(self.poll_interject(cx))?;
        }
        if self.phase() == ENDING {
            self.interims.phase.store(CLOSED, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what waits, as far as it is of the request under way.
    #[cold]
    fn poll_interject(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.rest.has_remaining() {
                match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.rest))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    written => self.rest.advance(written),
                }
            }
            let Some((request, count, heads)) = self.interims.take() else {
                return Poll::Ready(Ok(()));
            };
            let is_due =
                self.phase() != CLOSED && self.interims.request.load(Ordering::Relaxed) == request;
            let counts = &self.interims.counts;
            let counter = if is_due { &counts.passed } else { &counts.dropped };
            counter.fetch_add(count, Ordering::Relaxed);
            if is_due {
                self.rest = heads;
            }
        }
    }

    /// Whoever hears something wakes this task from now on.
    #[cold]
    fn is_polled_by(&mut self, task: &Waker) {
        self.task = Some(task.clone());
        self.interims.lock().task = Some(task.clone());
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Interjecting<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Interjecting<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.phase() != CLOSED {
            ready!(this.poll_before(cx))?;
        }
        this.is_between = false;
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.phase() != CLOSED {
            ready!(this.poll_before(cx))?;
        }
        this.is_between = false;
        Pin::new(&mut this.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            this.is_polled_by(cx.waker());
        }
        this.is_between = true;
        if this.waits() {
            ready!(this.poll_interject(cx))?;
        }
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

/// With which all names of Onus begin.
const ONUS: &str = "onus-";

#[cfg(test)]
mod tests;
