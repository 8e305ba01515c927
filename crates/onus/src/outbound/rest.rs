//! What is left of a failed answer while the next attempt waits.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use http_body::Body;
use pin_project_lite::pin_project;

pin_project! {
    /// Reads on, so that the failed answer's connection can be used again. An answer that is
    /// dropped half read costs a connection, and retries come when there are none to spare.
    pub(super) struct Rest<R> {
        #[pin]
        body: Option<R>,
        read: usize,
    }
}

/// The most that is read; a larger rest costs its connection after all.
const READ_MAX: usize = 64 * 1024;

impl<R: Body> Rest<R> {
    pub(super) fn new(body: Option<R>) -> Self {
        Self { body, read: 0 }
    }

    /// Reads what there is to read.
    pub(super) fn poll_drain(self: Pin<&mut Self>, cx: &mut Context<'_>) {
        let mut this = self.project();
        while let Some(body) = this.body.as_mut().as_pin_mut() {
            match body.poll_frame(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(frame))) => {
                    *this.read += frame.data_ref().map_or(0, Buf::remaining);
                    if *this.read > READ_MAX {
                        this.body.set(None);
                    }
                }
                Poll::Ready(Some(Err(_)) | None) => this.body.set(None),
            }
        }
    }
}
