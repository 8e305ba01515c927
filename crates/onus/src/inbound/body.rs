//! The body of an answer: its end is the end of the request.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::served::Served;

pin_project! {
    /// The body of an [`InboundService`](super::InboundService)'s answer.
    pub struct InboundBody<R> {
        // `None` for an answer of the layer itself, which has no body.
        #[pin]
        body: Option<R>,
        // `None` once the request is over.
        served: Option<Served>,
    }
}

impl<R: Body> InboundBody<R> {
    /// The body of the application's answer, whose end is reported where it is still to come.
    pub(crate) fn new(body: R, served: Option<Served>) -> Self {
        Self { body: Some(body), served }
    }
}

impl<R> InboundBody<R> {
    /// The body of an answer that the layer makes itself.
    pub(crate) fn empty() -> Self {
        Self { body: None, served: None }
    }
}

impl<R: Body> Body for InboundBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let this = self.project();
        let Some(mut body) = this.body.as_pin_mut() else { return Poll::Ready(None) };
        let Some(served) = this.served.as_mut() else { return body.poll_frame(cx) };
        let scope = served.enter();
        let mut frame = ready!(body.as_mut().poll_frame(cx));
        drop(scope);
        match &mut frame {
            Some(Ok(frame)) => {
                if let Some(block) = frame.trailers_mut() {
                    served.trailers(block);
                }
                if served.has_sent_all(body.size_hint()) || body.is_end_stream() {
                    finish(this.served);
                }
            }
            Some(Err(_)) => {
                if let Some(mut served) = this.served.take() {
                    served.broken();
                }
            }
            None => finish(this.served),
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

impl<R: Body> fmt::Debug for InboundBody<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboundBody").field("size", &self.size_hint()).finish_non_exhaustive()
    }
}

fn finish(served: &mut Option<Served>) {
    if let Some(mut served) = served.take() {
        served.finished();
    }
}
