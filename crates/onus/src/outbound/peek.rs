//! A look into the first frame behind a response head.
//!
//! Some gRPC servers send the head first and the status in a later block, also where there is no
//! message. A call that may be retried, and whose request has ended, is not given to the
//! application before its first frame: if that is the trailers, the call can still be retried.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{HeaderMap, Response, response};
use http_body::{Body, Frame};
use onus_agent::classify::{Answer, trailers};
use onus_agent::{CallError, ErrorSet};

use super::body::OutboundBody;
use crate::clock::Timer;

/// The longest that a response head is held back. Trailers of a call that failed follow at once;
/// a stream whose first message takes longer is a stream.
pub(super) const HELD_MAX: Duration = Duration::from_secs(1);

type First<R> = Option<Result<Frame<<R as Body>::Data>, <R as Body>::Error>>;

/// A response whose first frame is awaited.
pub(super) struct Peek<R: Body> {
    // Taken when the look is over.
    response: Option<(response::Parts, Pin<Box<R>>)>,
    /// When the look is over in any case.
    timer: Timer,
}

/// A response that was looked into.
pub(super) struct Peeked<R: Body> {
    head: response::Parts,
    rest: Pin<Box<R>>,
    /// `None` if nothing came in time.
    first: Option<First<R>>,
}

impl<R: Body> Peek<R> {
    pub(super) fn new(response: Response<R>, timer: Timer) -> Self {
        let (head, body) = response.into_parts();
        Self { response: Some((head, Box::pin(body))), timer }
    }

    /// Ready when the first frame is there, or does not come in time.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Peeked<R>> {
        let Some((_, body)) = &mut self.response else { return Poll::Pending };
        let first = match body.as_mut().poll_frame(cx) {
            Poll::Ready(first) => Some(first),
            Poll::Pending => {
                ready!(self.timer.as_mut().poll(cx));
                None
            }
        };
        match self.response.take() {
            Some((head, rest)) => Poll::Ready(Peeked { head, rest, first }),
            None => Poll::Pending,
        }
    }
}

impl<R: Body> Peeked<R> {
    /// How the call has failed, if it has.
    pub(super) fn failure(&self, failures: &ErrorSet) -> Option<CallError> {
        match self.first.as_ref()? {
            // Nothing has reached the application, so a break is one before the answer.
            Some(Err(_)) => Some(CallError::Reset),
            Some(Ok(frame)) => match trailers(frame.trailers_ref()?, failures) {
                Answer::Failed(error) => Some(error),
                Answer::Ok | Answer::Pending => None,
            },
            // The end, and no status on the way.
            None => Some(CallError::Protocol),
        }
    }

    /// The trailers, if they were first.
    pub(super) fn trailers(&self) -> Option<&HeaderMap> {
        self.first.as_ref()?.as_ref()?.as_ref().ok()?.trailers_ref()
    }

    /// The response as it came.
    pub(super) fn into_response(self) -> Response<OutboundBody<R>> {
        let body = match self.first {
            // A body may panic when it is polled after its end.
            Some(None) => OutboundBody::peeked(None, None),
            Some(first @ Some(_)) => OutboundBody::peeked(first, Some(self.rest)),
            None => OutboundBody::peeked(None, Some(self.rest)),
        };
        Response::from_parts(self.head, body)
    }
}
