//! The body of a request as it is sent over a connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use onus::replay::{BoxError, ReplayBody};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of a request as it is sent over a connection.
    #[project = SentProj]
    pub(crate) enum Sent<B> {
        /// As it came.
        Plain { #[pin] body: B },
        /// Kept, so that it can be sent over another connection.
        Kept { #[pin] body: ReplayBody<B> },
        /// None.
        Empty,
    }
}

impl<B> Body for Sent<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project() {
            SentProj::Plain { body } => {
                Poll::Ready(ready!(body.poll_frame(cx)).map(|frame| frame.map_err(Into::into)))
            }
            SentProj::Kept { body } => body.poll_frame(cx),
            SentProj::Empty => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plain { body } => body.is_end_stream(),
            Self::Kept { body } => body.is_end_stream(),
            Self::Empty => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Plain { body } => body.size_hint(),
            Self::Kept { body } => body.size_hint(),
            Self::Empty => SizeHint::with_exact(0),
        }
    }
}
