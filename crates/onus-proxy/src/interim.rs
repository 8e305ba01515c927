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
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Takes as many bytes as it has room for.
    struct Socket {
        room: usize,
        taken: Vec<u8>,
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = buf.len().min(self.room);
            if taken == 0 {
                return Poll::Pending;
            }
            self.room -= taken;
            self.taken.extend(&buf[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// What happens on a connection.
    enum Step {
        /// A request arrives, whose number is the count of them.
        Request,
        /// A callee sends an interim answer to this request, which is written as these bytes.
        Interim(u64, &'static str),
        /// The answer to the last request is ready, and the server has this to write.
        Answer(&'static str),
        /// The server has more to write.
        Bytes(&'static str),
        /// The socket takes so many bytes, and the task of the connection runs.
        Room(usize),
    }
    use Step::{Answer, Bytes, Interim, Request, Room};

    /// Runs the steps as hyper does: it writes what it has as far as it can, and flushes after that.
    /// What is on the wire then, and how many interim answers were passed on and dropped.
    fn check(steps: &[Step], wire: &str, [passed, dropped]: [u64; 2]) {
        let counts = Arc::new(InterimCounts::default());
        let interims = Interims::new(12, counts.clone());
        let socket = Socket { room: 0, taken: Vec::new() };
        let mut stream = Interjecting::new(socket, interims.clone());
        let mut unwritten = String::new();
        for step in steps {
            match *step {
                Request => drop(interims.next()),
                Interim(request, head) => {
                    interims.lock().add_and_count(request, head, &interims);
                    continue;
                }
                Answer(bytes) => {
                    interims.end();
                    unwritten.push_str(bytes);
                }
                Bytes(bytes) => unwritten.push_str(bytes),
                Room(room) => stream.stream.room = room,
            }
            let mut cx = Context::from_waker(Waker::noop());
            while !unwritten.is_empty() {
                let write = Pin::new(&mut stream).poll_write(&mut cx, unwritten.as_bytes());
                let Poll::Ready(written) = write else { break };
                unwritten.drain(..written.unwrap());
            }
            if unwritten.is_empty() {
                let _ = Pin::new(&mut stream).poll_flush(&mut cx);
            }
        }
        assert_eq!(String::from_utf8_lossy(&stream.stream.taken), wire);
        drop(stream);
        drop(interims);
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!([read(&counts.passed), read(&counts.dropped)], [passed, dropped], "{wire}");
    }

    impl Waiting {
        fn add_and_count(&mut self, request: u64, head: &str, interims: &Interims) {
            let lost = self.add(request, head.as_bytes(), interims.max);
            interims.wait.store(true, Ordering::Relaxed);
            interims.counts.dropped.fetch_add(lost, Ordering::Relaxed);
        }
    }

    const ALL: usize = 1_000;

    #[test]
    fn interim_answers_are_written_before_the_answer_and_between_whole_messages() {
        // As soon as they come, and in their order.
        check(&[Room(ALL), Request, Interim(1, "a"), Room(ALL)], "a", [1, 0]);
        check(
            &[Room(ALL), Request, Interim(1, "a"), Interim(1, "b"), Room(ALL), Answer("200")],
            "ab200",
            [2, 0],
        );
        // Together with the answer.
        check(&[Room(ALL), Request, Interim(1, "a"), Answer("200")], "a200", [1, 0]);
        // Before the server has told the client to go on, and after it.
        check(
            &[Room(ALL), Request, Interim(1, "a"), Bytes("100"), Interim(1, "b"), Answer("200")],
            "a100b200",
            [2, 0],
        );
    }

    #[test]
    fn no_message_is_torn_by_another() {
        // An interim answer is finished before anything else.
        check(
            &[Room(2), Request, Interim(1, "abcd"), Room(2), Answer("200"), Room(1), Room(ALL)],
            "abcd200",
            [1, 0],
        );
        // What the server has begun is finished first, and what waits comes then.
        check(
            &[Room(2), Request, Bytes("100"), Interim(1, "a"), Room(ALL), Answer("200")],
            "100a200",
            [1, 0],
        );
        // Not so where the answer follows at once: hyper writes both as one.
        check(
            &[Room(2), Request, Bytes("100"), Interim(1, "a"), Answer("200"), Room(ALL)],
            "100200",
            [0, 1],
        );
    }

    #[test]
    fn nothing_follows_the_head_of_the_answer() {
        check(
            &[Room(ALL), Request, Answer("200"), Interim(1, "a"), Room(ALL), Bytes("body")],
            "200body",
            [0, 1],
        );
        // Also where it is written in parts, and where it becomes a tunnel.
        check(
            &[Room(2), Request, Answer("101"), Interim(1, "a"), Room(ALL), Bytes("x"), Bytes("y")],
            "101xy",
            [0, 1],
        );
        // No request has come yet, or it cannot have any.
        check(&[Room(ALL), Interim(1, "a"), Bytes("400"), Room(ALL)], "400", [0, 1]);
    }

    #[test]
    fn an_interim_answer_is_of_one_request_only() {
        // The second has arrived while the answer to the first is being written.
        let written = [
            Room(2),
            Request,
            Answer("200"),
            Request,
            Interim(2, "b"),
            Room(ALL),
            Interim(2, "c"),
            Answer("404"),
        ];
        check(&written, "200bc404", [2, 0]);
        // An attempt for the first that was given up is heard of late.
        let late = [
            Room(ALL),
            Request,
            Answer("200"),
            Request,
            Interim(1, "a"),
            Room(ALL),
            Interim(2, "b"),
            Interim(1, "a"),
            Answer("404"),
        ];
        check(&late, "200b404", [1, 2]);
        let unread = [Room(0), Request, Interim(1, "a"), Interim(2, "b"), Interim(2, "c")];
        check(&unread, "", [0, 3]);
    }

    #[test]
    fn what_a_client_does_not_read_waits_up_to_a_limit() {
        check(
            &[Request, Interim(1, "12345"), Interim(1, "67890"), Interim(1, "abc"), Room(ALL)],
            "1234567890",
            [2, 1],
        );
        // What is being written has left the queue.
        check(
            &[
                Request,
                Interim(1, "1234567890ab"),
                Room(1),
                Interim(1, "1234567890ab"),
                Interim(1, "x"),
                Room(ALL),
            ],
            "1234567890ab1234567890ab",
            [2, 1],
        );
    }

    #[test]
    fn an_interim_answer_is_written_without_what_was_for_the_last_connection() {
        fn check(status: u16, lines: &[(&'static str, &'static str)], wire: &str) {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            let written = head(status.try_into().unwrap(), &headers);
            assert_eq!(String::from_utf8(written).unwrap(), wire);
        }
        check(102, &[], "HTTP/1.1 102 Processing\r\n\r\n");
        check(199, &[], "HTTP/1.1 199 \r\n\r\n");
        check(
            103,
            &[
                ("link", "</a>"),
                ("content-length", "5"),
                ("transfer-encoding", "chunked"),
                ("connection", "x-hop, close"),
                ("x-hop", "1"),
                ("upgrade", "h2c"),
                ("onus-claim", "claimed"),
                ("link", "</b>"),
            ],
            "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n",
        );
    }

    #[test]
    fn whoever_hears_something_wakes_the_connection() {
        use std::task::Wake;
        struct Bell(AtomicU64);
        impl Wake for Bell {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let bells = [Arc::new(Bell(AtomicU64::new(0))), Arc::new(Bell(AtomicU64::new(0)))];
        let interims = Interims::new(ALL, Arc::default());
        let socket = Socket { room: ALL, taken: Vec::new() };
        let mut stream = Interjecting::new(socket, interims.clone());
        let number = interims.next();
        for bell in &bells {
            let waker = Waker::from(bell.clone());
            let flushed = Pin::new(&mut stream).poll_flush(&mut Context::from_waker(&waker));
            assert!(flushed.is_ready());
            interims.hear(number, StatusCode::CONTINUE, &HeaderMap::new());
            assert_eq!(bell.0.load(Ordering::Relaxed), 0, "the server says that one itself");
            interims.hear(number, StatusCode::EARLY_HINTS, &HeaderMap::new());
            assert_eq!(bell.0.load(Ordering::Relaxed), 1);
        }
    }
}
