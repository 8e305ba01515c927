//! Attempts, read by hand.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame};

use super::super::*;
use super::script::{Event, Handle, Hint, Script, ScriptError};

pub(super) type Attempted = Pin<Box<ReplayBody<Script>>>;

/// What an attempt gave until it stopped giving.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) data: Vec<u8>,
    pub(super) trailers: Option<HeaderMap>,
    pub(super) stop: Stop,
}

#[derive(Debug, Default, PartialEq)]
pub(super) enum Stop {
    #[default]
    End,
    Pending,
    Replay(ReplayError),
    Script(ScriptError),
}

impl Seen {
    pub(super) fn data(data: impl Into<Vec<u8>>, stop: Stop) -> Self {
        Self { data: data.into(), trailers: None, stop }
    }
}

pub(super) fn read(body: &mut Attempted) -> Seen {
    let mut seen = Seen::default();
    loop {
        match step(body, Waker::noop()) {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => seen.data.extend(data),
                Err(frame) => seen.trailers = frame.into_trailers().ok(),
            },
            Poll::Ready(Some(Err(error))) => {
                seen.stop = match error.downcast::<ReplayError>() {
                    Ok(error) => Stop::Replay(*error),
                    Err(error) => Stop::Script(*error.downcast().expect("an error of the script")),
                };
                return seen;
            }
            Poll::Ready(None) => return seen,
            Poll::Pending => {
                seen.stop = Stop::Pending;
                return seen;
            }
        }
    }
}

pub(super) fn step(
    body: &mut Attempted,
    waker: &Waker,
) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
    body.as_mut().poll_frame(&mut Context::from_waker(waker))
}

pub(super) fn start(tape: &Tape<Script>) -> Attempted {
    Box::pin(tape.attempt(Attempt::FIRST).expect("replayable"))
}

pub(super) fn taped(
    events: impl IntoIterator<Item = Event>,
    hint: Hint,
    limits: &ReplayLimits,
) -> (Tape<Script>, Handle) {
    let (script, handle) = Script::new(events, hint, true);
    (Tape::new(script, limits), handle)
}

pub(super) fn bytes(len: usize) -> Event {
    Event::Data(Bytes::from(vec![7; len]))
}
