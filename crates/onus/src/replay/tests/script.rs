//! A body that does what a list says, and wakers that count.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};

/// What the body does, in this order. After the last one it ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    Data(Bytes),
    Trailers(HeaderMap),
    Fail,
    /// Is pending until [`Handle::open`] is called.
    Gate,
    /// Is pending once and wakes at once, as a cooperative scheduler does.
    Yield,
    Panic,
}

impl Event {
    pub(super) fn data(text: &str) -> Self {
        Self::Data(Bytes::copy_from_slice(text.as_bytes()))
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Data(data) => data.len() as u64,
            Self::Trailers(_) | Self::Fail | Self::Gate | Self::Yield | Self::Panic => 0,
        }
    }
}

/// One trailer with this value.
pub(super) fn trailers(value: &'static str) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("t", HeaderValue::from_static(value));
    map
}

/// What the body says about its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hint {
    Exact,
    AtLeast,
    AtMost,
    Unknown,
}

/// The error of [`Event::Fail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read the script")]
pub(super) struct ScriptError;

/// A scripted body. It is `!Unpin`, as the strictest bodies are.
pub(super) struct Script {
    handle: Handle,
    _pinned: std::marker::PhantomPinned,
}

/// The test's end of a [`Script`].
#[derive(Clone)]
pub(super) struct Handle(Arc<Mutex<Inner>>);

struct Inner {
    events: VecDeque<Event>,
    hint: Hint,
    tells_end: bool,
    waker: Option<Waker>,
    during_poll: Option<Hook>,
    dropped: bool,
}

type Hook = Box<dyn FnOnce() + Send>;

impl Script {
    /// A body that says `hint` about its size and, if `tells_end`, knows when it is at its end.
    pub(super) fn new(
        events: impl IntoIterator<Item = Event>,
        hint: Hint,
        tells_end: bool,
    ) -> (Self, Handle) {
        let handle = Handle(Arc::new(Mutex::new(Inner {
            events: events.into_iter().collect(),
            hint,
            tells_end,
            waker: None,
            during_poll: None,
            dropped: false,
        })));
        let script = Self { handle: handle.clone(), _pinned: std::marker::PhantomPinned };
        (script, handle)
    }
}

impl Handle {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets a body that waits at a gate go on.
    pub(super) fn open(&self) {
        let mut inner = self.lock();
        if inner.events.front() == Some(&Event::Gate) {
            inner.events.pop_front();
            let waker = inner.waker.take();
            drop(inner);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Runs `hook` inside the next poll.
    pub(super) fn during_next_poll(&self, hook: impl FnOnce() + Send + 'static) {
        self.lock().during_poll = Some(Box::new(hook));
    }

    /// Forgets the hook; false when it ran.
    pub(super) fn forget_hook(&self) -> bool {
        self.lock().during_poll.take().is_some()
    }

    /// What the body has still to do.
    pub(super) fn rest(&self) -> Vec<Event> {
        self.lock().events.iter().cloned().collect()
    }

    /// Whether the body was let go of.
    pub(super) fn dropped(&self) -> bool {
        self.lock().dropped
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.handle.lock().dropped = true;
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = ScriptError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ScriptError>>> {
        let hook = self.handle.lock().during_poll.take();
        if let Some(hook) = hook {
            hook();
        }
        let mut inner = self.handle.lock();
        let Some(event) = inner.events.pop_front() else {
            return Poll::Ready(None);
        };
        match event {
            Event::Data(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Event::Trailers(map) => Poll::Ready(Some(Ok(Frame::trailers(map)))),
            Event::Fail => Poll::Ready(Some(Err(ScriptError))),
            Event::Yield => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Event::Gate => {
                inner.events.push_front(Event::Gate);
                inner.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Event::Panic => panic!("the script says so"),
        }
    }

    fn is_end_stream(&self) -> bool {
        let inner = self.handle.lock();
        inner.tells_end && inner.events.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.handle.lock();
        let rest = inner.events.iter().map(Event::len).sum();
        let mut hint = SizeHint::new();
        match inner.hint {
            Hint::Exact => hint.set_exact(rest),
            Hint::AtLeast => hint.set_lower(rest),
            Hint::AtMost => hint.set_upper(rest + 1),
            Hint::Unknown => {}
        }
        hint
    }
}

/// A waker that counts.
#[derive(Default)]
pub(super) struct Wakes(AtomicUsize);

impl Wakes {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
