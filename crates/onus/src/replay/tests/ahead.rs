//! Bodies that are read before the first attempt, and bodies that panic where nobody expects it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::super::*;
use super::script::{Event, Hint, Script, ScriptError, trailers};

/// The data and trailers of a body that never waits, and whether it broke.
fn read<B>(body: B) -> (Vec<u8>, Option<HeaderMap>, Option<BoxError>)
where
    B: Body<Data = Bytes, Error = BoxError>,
{
    let mut body = pin!(body);
    let (mut data, mut trailers) = (Vec::new(), None);
    loop {
        let frame = pin!(body.frame()).poll(&mut Context::from_waker(Waker::noop()));
        match frame {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(part) => data.extend(part),
                Err(frame) => trailers = frame.into_trailers().ok(),
            },
            Poll::Ready(Some(Err(error))) => return (data, trailers, Some(error)),
            Poll::Ready(None) | Poll::Pending => return (data, trailers, None),
        }
    }
}

#[test]
fn what_is_read_ahead_is_sent_whatever_the_limits() {
    let parts = ["17", "", " ", "EUR", "!"].map(Event::data);
    let events: Vec<_> = parts.into_iter().chain([Event::Trailers(trailers("1"))]).collect();
    for per_request in 0..60 {
        for total in [0, 1, 3, 7, 20, 60] {
            for hint in [Hint::Exact, Hint::Unknown] {
                let limits = ReplayLimits::new(per_request, total);
                let (script, handle) = Script::new(events.clone(), hint, false);
                let tape = Tape::new(script, &limits);
                let (ahead, _, error) = read(tape.read_ahead().expect("a new tape"));
                assert!(error.is_none());
                assert!(limits.in_use() >= ahead.len(), "what was read is kept");
                let attempt = tape.attempt(Attempt::FIRST).expect("nothing is lost");
                let (data, found, error) = read(attempt);
                assert_eq!((&*data, found), (&b"17 EUR!"[..], Some(trailers("1"))));
                assert!(error.is_none());
                drop(tape);
                assert_eq!(limits.in_use(), 0);
                assert!(handle.dropped());
            }
        }
    }
}

#[test]
fn digests_of_bodies_read_ahead_need_all_data() {
    let check = |per_request, known| {
        let events = [Event::data("17"), Event::data(" EUR"), Event::Trailers(trailers("1"))];
        let (script, _) = Script::new(events, Hint::Exact, true);
        let tape = Tape::new(script, &ReplayLimits::new(per_request, 1000));
        read(tape.read_ahead().expect("a new tape"));
        assert_eq!(tape.digest().is_some(), known, "{per_request}");
    };
    check(100, true);
    // The trailers have no room, and are no part of the digest.
    check(6, true);
    check(5, false);
    check(0, false);
}

#[test]
fn a_body_that_breaks_ahead_is_broken() {
    let (script, _) = Script::new([Event::data("17"), Event::Fail], Hint::Unknown, true);
    let tape = Tape::new(script, &ReplayLimits::default());
    let (data, _, error) = read(tape.read_ahead().expect("a new tape"));
    assert_eq!(data, b"17");
    assert!(error.is_some_and(|error| error.is::<ScriptError>()));
    assert_eq!(tape.attempt(Attempt::FIRST).err(), Some(NotReplayable::Error));
}

/// Three bytes, whose size cannot be told at the `panics`th time.
struct Shy {
    asked: AtomicUsize,
    panics: usize,
    left: usize,
}

impl Body for Shy {
    type Data = Bytes;
    type Error = ScriptError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ScriptError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
    }

    fn size_hint(&self) -> SizeHint {
        assert!(self.asked.fetch_add(1, Ordering::Relaxed) != self.panics, "asked too often");
        SizeHint::new()
    }
}

#[test]
fn a_size_that_cannot_be_told_cuts_nothing_off() {
    for panics in 1..5 {
        let shy = Shy { asked: AtomicUsize::new(0), panics, left: 3 };
        let tape = Tape::new(shy, &ReplayLimits::default());
        let tape = Arc::new(tape);
        let first = tape.attempt(Attempt::FIRST).expect("a new tape");
        let first = std::thread::spawn(move || read(first)).join();
        assert!(first.is_err(), "{panics}");
        let (data, _, error) = read(tape.attempt(Attempt::FIRST.next()).expect("replayable"));
        assert!(data == b"xxx" || error.is_some(), "{panics}: {data:?}");
    }
}
