//! The body of a callee's answer: a break on the way makes the call a failure after all.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use onus_agent::classify::{Answer, trailers};
use onus_agent::{CallError, Draw, FailedAttempt, Outbound};
use pin_project_lite::pin_project;

use crate::clock::Clock;

pin_project! {
    /// The body of an [`OutboundService`](super::OutboundService)'s response.
    pub struct OutboundBody<R>
    where
        R: Body,
    {
        #[pin]
        kind: Kind<R>,
        watch: Option<Watch>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<R>
    where
        R: Body,
    {
        /// An answer of the layer itself, which has no body.
        Own,
        Callee { #[pin] body: R },
        /// A body whose first frame has been looked into.
        Peeked { peeked: Box<Peeked<R>> },
    }
}

/// A body and what was read of it.
struct Peeked<R: Body> {
    first: Option<Result<Frame<R::Data>, R::Error>>,
    // `None` when the body has ended.
    rest: Option<Pin<Box<R>>>,
}

/// Keeps account of a call until its answer has been read.
pub(super) struct Watch {
    pub(super) outbound: Outbound,
    pub(super) clock: Clock,
    pub(super) awaits: Awaits,
}

/// What may still happen to a call behind its response head.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaits {
    /// The outcome is to come, in the trailers.
    Trailers,
    /// A break would make it a failure.
    End,
    /// It has failed.
    Nothing,
}

impl<R: Body> OutboundBody<R> {
    /// The callee's body.
    pub(super) fn new(body: R) -> Self {
        Self { kind: Kind::Callee { body }, watch: None }
    }

    /// The callee's body, of which `first` was read, if anything, and `rest` is left.
    pub(super) fn peeked(
        first: Option<Result<Frame<R::Data>, R::Error>>,
        rest: Option<Pin<Box<R>>>,
    ) -> Self {
        Self { kind: Kind::Peeked { peeked: Box::new(Peeked { first, rest }) }, watch: None }
    }

    /// The body of an answer that the layer makes itself.
    pub(super) fn empty() -> Self {
        Self { kind: Kind::Own, watch: None }
    }

    /// Keeps account of the call, as something may still happen to it.
    pub(super) fn watch(&mut self, watch: Option<Watch>) {
        self.watch = watch;
        end_if_it_was(&mut self.watch, &self.kind);
    }
}

impl<R: Body> Body for OutboundBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let mut this = self.project();
        let mut frame = match this.kind.as_mut().project() {
            KindProj::Own => return Poll::Ready(None),
            KindProj::Callee { body } => ready!(body.poll_frame(cx)),
            KindProj::Peeked { peeked } => match (peeked.first.take(), &mut peeked.rest) {
                (Some(first), _) => Some(first),
                (None, Some(rest)) => ready!(rest.as_mut().poll_frame(cx)),
                (None, None) => None,
            },
        };
        match &mut frame {
            Some(Ok(frame)) => {
                if let (Some(block), Some(watch)) = (frame.trailers_mut(), this.watch.as_mut()) {
                    watch.trailers(block);
                }
                end_if_it_was(this.watch, &this.kind);
            }
            Some(Err(_)) => {
                if let Some(mut watch) = this.watch.take() {
                    watch.broke();
                }
            }
            None => {
                if let Some(mut watch) = this.watch.take() {
                    watch.ended();
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.kind.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own => SizeHint::with_exact(0),
            Kind::Callee { body } => body.size_hint(),
            Kind::Peeked { peeked } => peeked.size_hint(),
        }
    }
}

/// No body, as tonic's interceptors answer where they refuse a call.
impl<R: Body> Default for OutboundBody<R> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<R: Body> fmt::Debug for OutboundBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundBody").field("size", &self.size_hint()).finish_non_exhaustive()
    }
}

impl<R: Body> Kind<R> {
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own => true,
            Self::Callee { body } => body.is_end_stream(),
            Self::Peeked { peeked } => peeked.is_end_stream(),
        }
    }
}

/// Tells a watch that waits for trailers that there are none, once `body` is at its end. Whoever
/// asks a body for its end does not poll it again.
fn end_if_it_was<R: Body>(watch: &mut Option<Watch>, body: &Kind<R>) {
    let waits = watch.as_ref().is_some_and(|watch| watch.awaits == Awaits::Trailers);
    if waits
        && body.is_end_stream()
        && let Some(mut watch) = watch.take()
    {
        watch.ended();
    }
}

impl<R: Body> Peeked<R> {
    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    /// What is left, with the data that was read and not handed on. There is no upper end where
    /// trailers are left: a sender that knows the exact size stops there and cuts them off.
    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        let rest = self.rest.as_ref().map_or_else(none, Body::size_hint);
        let first = self.first.as_ref().and_then(|first| first.as_ref().ok());
        let data = first.and_then(Frame::data_ref).map_or(0, |data| data.remaining() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(data));
        if let Some(upper) = rest.upper().filter(|_| !first.is_some_and(Frame::is_trailers)) {
            hint.set_upper(upper.saturating_add(data));
        }
        hint
    }
}

impl Watch {
    fn trailers(&mut self, block: &mut HeaderMap) {
        if self.awaits == Awaits::Trailers {
            match trailers(block, &self.outbound.edge().policy().failures) {
                Answer::Failed(error) => self.failed(error, Some(block)),
                Answer::Ok | Answer::Pending => {
                    self.awaits = Awaits::End;
                    self.outbound.ok(false, || self.clock.now());
                }
            }
        }
        self.outbound.hide_from_application(block);
    }

    fn broke(&mut self) {
        if self.awaits != Awaits::Nothing {
            self.failed(CallError::Reset, None);
        }
    }

    /// The body has ended; an outcome that was to come in the trailers has not come.
    fn ended(&mut self) {
        if self.awaits == Awaits::Trailers {
            self.failed(CallError::Protocol, None);
        }
    }

    /// The call has failed behind the response head: nothing can be sent again.
    fn failed(&mut self, error: CallError, headers: Option<&HeaderMap>) {
        self.awaits = Awaits::Nothing;
        let wall = self.clock.wall();
        let failed = FailedAttempt { error, headers, replayable: false, body_broke: false, wall };
        let draw = Draw::from_bits(fastrand::u64(..));
        self.outbound.attempt_failed(&failed, self.clock.now(), draw);
    }
}
