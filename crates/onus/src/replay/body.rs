//! The request body that an outbound layer hands to the service below it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::attempt::Attempt;
use super::digest::DigestCell;
use super::error::BoxError;
use super::reader::{Reader, into_bytes};
use super::trail::Trail;

pin_project! {
    /// The body of one attempt of a call.
    ///
    /// Either the caller's body itself, passed on frame by frame, or a reading of a
    /// [`Tape`](super::Tape). The error is that of the caller's body as it was, or a
    /// [`ReplayError`](super::ReplayError).
    pub struct ReplayBody<B> {
        #[pin]
        kind: Kind<B>,
        attempt: Attempt,
        // Of a call that may have another attempt.
        trail: Option<Arc<Trail>>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B> {
        Empty,
        Once { #[pin] body: B, digest: Option<Arc<DigestCell>> },
        Replay { reader: Reader<B> },
        Failed { error: Option<BoxError> },
    }
}

impl<B> ReplayBody<B> {
    /// The caller's body for a call that is sent once. It costs nothing; with a cell its digest
    /// can be asked for after the body was handed away.
    pub fn once(body: B, attempt: Attempt, digest: Option<Arc<DigestCell>>) -> Self {
        Self { kind: Kind::Once { body, digest }, attempt, trail: None }
    }

    /// A body without data and trailers.
    pub fn empty(attempt: Attempt) -> Self {
        Self { kind: Kind::Empty, attempt, trail: None }
    }

    /// A body that has nothing but this error, for a caller's body that broke before it was sent.
    pub(crate) fn failed(error: BoxError, attempt: Attempt) -> Self {
        Self { kind: Kind::Failed { error: Some(error) }, attempt, trail: None }
    }

    pub(super) fn replay(reader: Reader<B>, attempt: Attempt) -> Self {
        Self { kind: Kind::Replay { reader }, attempt, trail: None }
    }

    /// The caller's body as it was, where this is nothing else.
    ///
    /// # Errors
    ///
    /// This body, where it can be sent again or its digest is asked for.
    #[cfg(feature = "tonic")]
    pub(crate) fn into_once(self) -> Result<B, Self> {
        match self.kind {
            Kind::Once { body, digest: None } => Ok(body),
            kind
            @ (Kind::Empty | Kind::Once { .. } | Kind::Replay { .. } | Kind::Failed { .. }) => {
                Err(Self { kind, attempt: self.attempt, trail: self.trail })
            }
        }
    }

    /// With what the attempts of its call leave for each other.
    pub(super) fn with_trail(mut self, trail: Option<Arc<Trail>>) -> Self {
        self.trail = trail;
        self
    }

    /// What the attempts of this call leave for each other; `None` where there is only one.
    pub fn trail(&self) -> Option<&Arc<Trail>> {
        self.trail.as_ref()
    }

    /// The attempt that this body belongs to.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }
}

impl<B> Body for ReplayBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().kind.project() {
            KindProj::Empty => Poll::Ready(None),
            KindProj::Once { mut body, digest } => {
                let frame = match ready!(body.as_mut().poll_frame(cx)) {
                    Some(Ok(frame)) => Some(Ok(frame.map_data(into_bytes))),
                    Some(Err(error)) => Some(Err(error.into())),
                    None => None,
                };
                if let Some(cell) = digest {
                    note(cell, &frame, &*body);
                }
                Poll::Ready(frame)
            }
            KindProj::Replay { reader } => reader.poll_frame(cx),
            KindProj::Failed { error } => Poll::Ready(error.take().map(Err)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Once { body, .. } => body.is_end_stream(),
            Kind::Replay { reader } => reader.is_end_stream(),
            Kind::Failed { error } => error.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Once { body, .. } => body.size_hint(),
            Kind::Replay { reader } => reader.size_hint(),
            Kind::Failed { .. } => SizeHint::new(),
        }
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Empty => "empty",
            Kind::Once { .. } => "once",
            Kind::Replay { .. } => "replay",
            Kind::Failed { .. } => "failed",
        };
        f.debug_struct("ReplayBody").field("kind", &kind).field("attempt", &self.attempt).finish()
    }
}

/// Tells the cell what came. Senders that know the size stop at the last byte and never ask for
/// the end, so the cell has to learn of it with the frame.
fn note<E>(cell: &DigestCell, frame: &Option<Result<Frame<Bytes>, E>>, rest: &impl Body) {
    match frame {
        Some(Ok(frame)) => {
            let last = rest.is_end_stream() || rest.size_hint().exact() == Some(0);
            cell.frame(frame, last);
        }
        Some(Err(_)) => cell.broke(),
        None => cell.end(),
    }
}
