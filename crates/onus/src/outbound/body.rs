//! The body of a callee's answer: a break on the way makes the call a failure after all.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use onus_agent::classify::{Answer, trailers};
use onus_agent::{CallError, Draw, FailedAttempt, Outbound};
use pin_project_lite::pin_project;

use crate::clock::Clock;

pin_project! {
    /// The body of an [`OutboundService`](super::OutboundService)'s response.
    pub struct OutboundBody<R> {
        // `None` for an answer of the layer itself, which has no body.
        #[pin]
        body: Option<R>,
        watch: Option<Watch>,
    }
}

/// Keeps account of a call until its answer has been read.
pub(super) struct Watch {
    pub(super) outbound: Outbound,
    pub(super) clock: Clock,
    /// Whether the outcome is still to come, in the trailers.
    pub(super) pending: bool,
}

impl<R> OutboundBody<R> {
    /// The callee's body; `watch` where something may still happen to the call.
    pub(super) fn new(body: R, watch: Option<Watch>) -> Self {
        Self { body: Some(body), watch }
    }

    /// The body of an answer that the layer makes itself.
    pub(super) fn empty() -> Self {
        Self { body: None, watch: None }
    }
}

impl<R: Body> Body for OutboundBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let this = self.project();
        let Some(body) = this.body.as_pin_mut() else { return Poll::Ready(None) };
        let mut frame = ready!(body.poll_frame(cx));
        match &mut frame {
            Some(Ok(frame)) => {
                if let (Some(block), Some(watch)) = (frame.trailers_mut(), this.watch.as_mut())
                    && watch.trailers(block)
                {
                    // Whatever comes after these trailers, the call fails once.
                    *this.watch = None;
                }
            }
            Some(Err(_)) => {
                if let Some(mut watch) = this.watch.take() {
                    watch.failed(CallError::Reset, None);
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
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Watch {
    /// The trailers are there; returns whether they say that the call has failed.
    fn trailers(&mut self, block: &mut HeaderMap) -> bool {
        if !std::mem::replace(&mut self.pending, false) {
            return false;
        }
        let failed = match trailers(block, &self.outbound.edge().policy().failures) {
            Answer::Failed(error) => {
                self.failed(error, Some(block));
                true
            }
            Answer::Ok | Answer::Pending => {
                self.outbound.ok(false, || self.clock.now());
                false
            }
        };
        self.outbound.hide_from_application(block);
        failed
    }

    /// The body has ended; an outcome that was to come in the trailers has not come.
    fn ended(&mut self) {
        if std::mem::replace(&mut self.pending, false) {
            self.failed(CallError::Protocol, None);
        }
    }

    /// The call has failed behind the response head: nothing can be sent again.
    fn failed(&mut self, error: CallError, headers: Option<&HeaderMap>) {
        let wall = self.clock.wall();
        let failed = FailedAttempt { error, headers, replayable: false, wall };
        let draw = Draw::from_bits(fastrand::u64(..));
        self.outbound.attempt_failed(&failed, self.clock.now(), draw);
    }
}
