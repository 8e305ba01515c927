//! The body of a callee's answer, whose end gives the connection back.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::access::OpenEntry;
use super::{http1, http2};

/// The body of a callee's answer.
pub(crate) struct PoolBody<B: Send + 'static> {
    body: Incoming,
    lease: Option<Lease<B>>,
    /// The line of the access log that the trailers complete.
    log: Option<Box<OpenEntry>>,
}

/// A connection, or a stream on one, for as long as an answer is read.
pub(super) enum Lease<B> {
    Http1(http1::Lease<B>),
    Http2(#[expect(dead_code, reason = "it ends when it is dropped")] http2::Lease<B>),
}

impl<B: Send + 'static> PoolBody<B> {
    pub(super) fn new(body: Incoming, lease: Lease<B>) -> Self {
        let mut body = Self { body, lease: Some(lease), log: None };
        body.end_if_it_was();
        body
    }

    /// Leaves a line of the access log to the end of the body.
    pub(super) fn log(&mut self, entry: Box<OpenEntry>) {
        self.log = Some(entry);
    }

    /// Gives the connection back once nothing of the answer is left. A body that breaks or is
    /// dropped before takes its connection with it.
    fn end_if_it_was(&mut self) {
        if self.body.is_end_stream() {
            self.ended();
        }
    }

    #[cold]
    fn log_end(&mut self, frame: Option<&Result<Frame<Bytes>, hyper::Error>>) {
        let nothing = HeaderMap::new();
        let trailers = match frame {
            Some(Ok(frame)) => frame.trailers_ref().map(Ok),
            Some(Err(error)) => Some(Err(error)),
            None => Some(Ok(&nothing)),
        };
        match trailers.and_then(|trailers| Some((self.log.take()?, trailers))) {
            Some((mut entry, Ok(trailers))) => entry.end(trailers),
            Some((mut entry, Err(error))) => entry.breaks(error),
            None => {}
        }
    }

    fn ended(&mut self) {
        match self.lease.take() {
            Some(Lease::Http1(lease)) => lease.give_back(),
            Some(Lease::Http2(_)) | None => {}
        }
    }
}

impl<B: Send + 'static> Body for PoolBody<B> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if this.log.is_some() {
            this.log_end(frame.as_ref());
        }
        match &frame {
            Some(Ok(_)) => this.end_if_it_was(),
            Some(Err(_)) => this.lease = None,
            None => this.ended(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// Nothing in it is pinned where it is.
impl<B: Send + 'static> Unpin for PoolBody<B> {}

impl<B: Send + 'static> fmt::Debug for PoolBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBody").field("size", &self.size_hint()).finish_non_exhaustive()
    }
}
