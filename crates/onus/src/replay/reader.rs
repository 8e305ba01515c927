//! One attempt's reading of a tape.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

use super::error::{BoxError, NotReplayable};
use super::state::{Next, Polled, Shared, Step};

/// The place of one attempt on a tape.
pub(super) struct Reader<B> {
    source: Source<B>,
    turn: u32,
}

impl<B> Reader<B> {
    /// Takes the turn from the attempt before. One that reads ahead ends where something cannot be
    /// kept for the attempt after it.
    pub(super) fn begin(shared: &Arc<Shared<B>>, ahead: bool) -> Result<Self, NotReplayable> {
        Ok(Self {
            turn: shared.with(|state, leftovers| state.begin(ahead, leftovers))?,
            source: Source::Tape(Arc::clone(shared)),
        })
    }
}

impl<B> Reader<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Source::Tape(shared) = &self.source else {
            return Poll::Ready(None);
        };
        let next = shared.with(|state, leftovers| state.next(self.turn, cx, leftovers));
        let step = match next {
            Next::Step(step) => step,
            Next::Poll(body) => match poll_original(shared, body, self.turn, cx) {
                Ok(step) => step,
                Err(error) => {
                    self.source = Source::Failed;
                    return Poll::Ready(Some(Err(error.into())));
                }
            },
        };
        match step {
            Step::Deliver(frame, last) => {
                if last {
                    self.source = Source::Ended;
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Step::Wait => Poll::Pending,
            Step::End => {
                self.source = Source::Ended;
                Poll::Ready(None)
            }
            Step::Fail(error) => {
                self.source = Source::Failed;
                Poll::Ready(Some(Err(error.into())))
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Tape(shared) => shared.lock().is_end_stream(self.turn),
            Source::Ended => true,
            Source::Failed => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Tape(shared) => shared.lock().size_hint(self.turn),
            Source::Ended => SizeHint::with_exact(0),
            Source::Failed => SizeHint::new(),
        }
    }
}

impl<B> Drop for Reader<B> {
    fn drop(&mut self) {
        if let Source::Tape(shared) = &self.source {
            shared.with(|state, leftovers| state.leave(self.turn, leftovers));
        }
    }
}

/// What a reader reads; one that is done holds nothing.
enum Source<B> {
    Tape(Arc<Shared<B>>),
    Ended,
    Failed,
}

/// Polls the caller's body on loan from the tape, and gives it back.
fn poll_original<B: Body>(
    shared: &Shared<B>,
    mut body: Pin<Box<B>>,
    turn: u32,
    cx: &mut Context<'_>,
) -> Result<Step, B::Error> {
    let unless_given_back = Break(shared);
    let polled = match body.as_mut().poll_frame(cx) {
        Poll::Pending => Polled::Pending,
        Poll::Ready(None) => Polled::End,
        Poll::Ready(Some(frame)) => {
            let frame = frame?.map_data(into_bytes);
            // Trailers end a body, whatever else it says.
            let last = frame.is_trailers() || body.is_end_stream();
            Polled::Frame { frame, last }
        }
    };
    std::mem::forget(unless_given_back);
    Ok(shared.with(|state, leftovers| state.give_back(turn, body, polled, cx, leftovers)))
}

/// Tells the other attempts, also when the poll panics, that the body will not come back.
struct Break<'a, B>(&'a Shared<B>);

impl<B> Drop for Break<'_, B> {
    fn drop(&mut self) {
        self.0.with(|state, leftovers| state.broke(leftovers));
    }
}

/// The data of a frame as one buffer; free where it is one already.
pub(super) fn into_bytes(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}
