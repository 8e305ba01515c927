//! A callee that answers when it is told to.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use onus::replay::ReplayBody;
use onus::{AttemptError, CallError};
use tokio::sync::oneshot;
use tower::Service;

use super::wire::{Blocks, Wire};
use crate::cast::Pieces;

/// A callee that answers when it is told to.
#[derive(Clone, Default)]
pub(super) struct Callee {
    waiting: Arc<Mutex<VecDeque<Attempt>>>,
}

/// An attempt that waits for its answer.
pub(super) struct Attempt {
    /// The name of the call.
    pub(super) call: String,
    pub(super) headers: HeaderMap,
    answer: oneshot::Sender<Answer>,
}

/// An answer, or how there is none.
type Answer = Result<Response<Held>, Lost>;

/// Why there is no answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost(pub(super) AttemptError);

/// A body that is held until it is let go of, or breaks; then come its trailers.
#[derive(Default)]
pub(super) struct Held {
    breaks: Option<oneshot::Receiver<Lost>>,
    trailers: Option<HeaderMap>,
}

impl Callee {
    /// The attempt that waits for this call.
    pub(super) fn attempt_of(&self, call: &str) -> Option<Attempt> {
        let mut waiting = self.waiting.lock().unwrap();
        // Attempts that were given up wait for nothing.
        waiting.retain(|attempt| !attempt.answer.is_closed());
        let at = waiting.iter().position(|attempt| attempt.call == call)?;
        waiting.remove(at)
    }
}

impl Attempt {
    pub(super) fn fail(self, reply: Result<Blocks, Lost>) {
        let held = |(head, trailers): Blocks| head.map(|()| Held { breaks: None, trailers });
        let _ = self.answer.send(reply.map(held));
    }

    /// Answers with a body that ends when the sender is dropped, or breaks when it is used.
    pub(super) fn succeed(self, wire: Wire) -> oneshot::Sender<Lost> {
        let (breaks, broken) = oneshot::channel();
        let (head, trailers) = wire.blocks(None, HeaderMap::new());
        let held = Held { breaks: Some(broken), trailers };
        let _ = self.answer.send(Ok(head.map(|()| held)));
        breaks
    }
}

impl Service<Request<ReplayBody<Pieces>>> for Callee {
    type Response = Response<Held>;
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Pieces>>) -> Self::Future {
        let (head, body) = request.into_parts();
        let waiting = self.waiting.clone();
        Box::pin(async move {
            // A body that was read is a body that is gone.
            let _ = body.collect().await;
            let (answer, answered) = oneshot::channel();
            let call = head.uri.query().unwrap_or_default().to_owned();
            waiting.lock().unwrap().push_back(Attempt { call, headers: head.headers, answer });
            answered.await.unwrap_or(Err(Lost(CallError::Reset.into())))
        })
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = Lost;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Lost>>> {
        if let Some(breaks) = &mut self.breaks {
            let broken = ready!(Pin::new(breaks).poll(cx));
            self.breaks = None;
            if let Ok(lost) = broken {
                return Poll::Ready(Some(Err(lost)));
            }
        }
        Poll::Ready(self.trailers.take().map(|block| Ok(Frame::trailers(block))))
    }

    fn is_end_stream(&self) -> bool {
        self.breaks.is_none() && self.trailers.is_none()
    }
}
