//! The body of a scripted answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// The body of an [`Answer`](super::Answer).
#[derive(Clone, Debug, Default)]
pub struct AnswerBody {
    data: Bytes,
    trailers: Option<HeaderMap>,
}

impl AnswerBody {
    pub(super) fn new(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self { data, trailers }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = std::mem::take(&mut self.data);
        let data = (!data.is_empty()).then(|| Frame::data(data));
        let next = data.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(next.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none()
    }

    /// Unknown where trailers follow: who knows the size stops before them.
    fn size_hint(&self) -> SizeHint {
        match self.trailers {
            Some(_) => SizeHint::new(),
            None => SizeHint::with_exact(self.data.len() as u64),
        }
    }
}
