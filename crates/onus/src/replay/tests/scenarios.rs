//! Situations that broke replay bodies in the field, each a test with the scenario's number.

use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bytes::Bytes;
use http_body::Body;

use super::super::*;
use super::reading::{Attempted, Seen, Stop, bytes, read, start, step, taped};
use super::script::{Event, Hint, Script, ScriptError, Wakes, trailers};

#[test]
fn s03_no_exact_size_while_trailers_are_to_be_sent() {
    let limits = ReplayLimits::default();
    let check = |hint: Hint, events: &[Event], first: Option<u64>, again: Option<u64>| {
        let (tape, _) = taped(events.to_vec(), hint, &limits);
        let mut body = start(&tape);
        assert_eq!(body.size_hint().exact(), first, "{hint:?}, first attempt");
        let sent = read(&mut body);

        let mut body = start(&tape);
        assert_eq!(body.size_hint().exact(), again, "{hint:?}, second attempt");
        assert_eq!(body.size_hint().lower(), sent.data.len() as u64);
        while body.size_hint().lower() > 0 {
            assert!(!body.is_end_stream());
            assert!(step(&mut body, Waker::noop()).is_ready());
        }
        assert_eq!(body.is_end_stream(), sent.trailers.is_none(), "{hint:?}");
        assert_eq!(read(&mut body).trailers, sent.trailers);
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    };
    let data = || Event::data("grpc-web");
    let end = || Event::Trailers(trailers("0"));

    // What the caller's body says of itself is passed on; what the tape knows is never exact.
    check(Hint::Exact, &[data(), end()], Some(8), None);
    check(Hint::Unknown, &[data(), end()], None, None);
    check(Hint::Exact, &[end()], Some(0), None);
    check(Hint::AtLeast, &[data(), data(), end()], None, None);
    // Without trailers the size stays exact, so the retry carries a content-length too.
    check(Hint::Exact, &[data(), data()], Some(16), Some(16));
    check(Hint::Unknown, &[data(), data()], None, Some(16));
}

#[test]
fn s05_an_early_answer_lets_the_next_attempt_take_the_upload_over() {
    let limits = ReplayLimits::new(65_536, 65_536);
    let upload = (0..2048).flat_map(|_| [bytes(1024), Event::Gate]);
    let (tape, handle) = taped(upload, Hint::Exact, &limits.with_per_request(4 << 20));
    drop(tape);
    assert!(handle.dropped());

    let upload = (0..2048).flat_map(|_| [bytes(1024), Event::Gate]);
    let (script, handle) = Script::new(upload, Hint::Unknown, true);
    let tape = Tape::new(script, &limits);
    let wakes = Arc::new(Wakes::default());

    let mut first = start(&tape);
    assert!(step(&mut first, &Waker::from(wakes.clone())).is_ready());
    assert!(step(&mut first, &Waker::from(wakes.clone())).is_pending());

    let mut second = start(&tape);
    assert_eq!(wakes.count(), 1, "the first attempt must learn of it");
    assert_eq!(read(&mut second), Seen::data([7; 1024], Stop::Pending));
    let superseded = Stop::Replay(ReplayError::Superseded);
    assert_eq!(read(&mut first), Seen::data([], superseded));
    assert_eq!(read(&mut first), Seen::default());
    assert!(!first.is_end_stream(), "the message was cut off");

    let mut sent = 1024;
    while !second.is_end_stream() {
        handle.open();
        sent += read(&mut second).data.len();
    }
    assert_eq!(sent, 2048 * 1024);
    assert_eq!(tape.replayable(), Err(NotReplayable::OverLimit));
    assert!(handle.dropped());
}

#[test]
fn s05_an_attempt_that_sent_everything_is_not_disturbed_by_the_next() {
    let limits = ReplayLimits::default();
    let (tape, _) = taped([Event::data("all")], Hint::Unknown, &limits);
    let mut first = start(&tape);
    assert!(step(&mut first, Waker::noop()).is_ready());
    let mut second = start(&tape);

    assert!(first.is_end_stream());
    assert_eq!(read(&mut first), Seen::default());
    assert_eq!(read(&mut second), Seen::data("all", Stop::End));
}

#[test]
fn s05_an_attempt_that_takes_over_during_a_poll_loses_nothing() {
    let limits = ReplayLimits::default();
    let check = |event: Event, first_stop: Stop, second: Seen| {
        let name = format!("{event:?}");
        let (tape, handle) = taped([Event::data("a"), event], Hint::Exact, &limits);
        let tape = Arc::new(tape);
        let wakes = Arc::new(Wakes::default());
        let started: Arc<Mutex<Option<Attempted>>> = Arc::default();
        let mut first = start(&tape);
        assert!(step(&mut first, Waker::noop()).is_ready());

        let hook = {
            let (tape, wakes, started) = (tape.clone(), wakes.clone(), started.clone());
            move || {
                let mut second = start(&tape);
                let waker = Waker::from(wakes.clone());
                let left = second.size_hint().exact().expect("the size is still known");
                assert!(step(&mut second, &waker).is_ready());
                assert!(step(&mut second, &waker).is_pending());
                assert_eq!(second.size_hint().exact(), Some(left - 1));
                *started.lock().expect("not poisoned") = Some(second);
            }
        };
        handle.during_next_poll(hook);
        let first_poll =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(&mut first)));
        if let Ok(seen) = first_poll {
            assert_eq!(seen, Seen::data([], first_stop), "{name}");
        }
        assert_eq!(wakes.count(), 1, "{name}");
        let mut body = started.lock().expect("not poisoned").take().expect("hook ran");
        assert_eq!(read(&mut body), second, "{name}");
    };
    let superseded = || Stop::Replay(ReplayError::Superseded);
    let broken = || Stop::Replay(ReplayError::Broken);

    check(bytes(2), superseded(), Seen::data([7, 7], Stop::End));
    check(Event::Gate, superseded(), Seen::data([], Stop::Pending));
    check(
        Event::Trailers(trailers("0")),
        superseded(),
        Seen { trailers: Some(trailers("0")), ..Seen::default() },
    );
    // The error goes where it was read; the other attempt must not wait for ever.
    check(Event::Fail, Stop::Script(ScriptError), Seen::data([], broken()));
    check(Event::Panic, Stop::End, Seen::data([], broken()));
}

#[test]
fn s06_every_attempt_sends_the_same_body() {
    let limits = ReplayLimits::default();
    let check = |hint: Hint, tells_end: bool, events: &[Event]| {
        let (script, _) = Script::new(events.to_vec(), hint, tells_end);
        let tape = Tape::new(script, &limits);
        let mut expected = Seen::default();
        for event in events {
            match event {
                Event::Data(data) => expected.data.extend(data),
                Event::Trailers(map) => expected.trailers = Some(map.clone()),
                Event::Fail | Event::Gate | Event::Yield | Event::Panic => {}
            }
        }
        for attempt in 1..=3 {
            assert_eq!(read(&mut start(&tape)), expected, "attempt {attempt}");
        }
    };
    let (data, end) = (|| Event::data("body"), || Event::Trailers(trailers("0")));

    for hint in [Hint::Exact, Hint::AtLeast, Hint::AtMost, Hint::Unknown] {
        for tells_end in [true, false] {
            check(hint, tells_end, &[]);
            check(hint, tells_end, &[data()]);
            check(hint, tells_end, &[data(), Event::data(""), bytes(5000), data()]);
            check(hint, tells_end, &[data(), end()]);
            check(hint, tells_end, &[end()]);
            let letters = || (b'a'..=b'z').map(|letter| Event::Data(vec![letter; 3].into()));
            let long: Vec<_> = letters().chain([bytes(5000)]).chain(letters()).collect();
            check(hint, tells_end, &long);
        }
    }
}

#[test]
fn s08_a_body_over_the_limit_is_sent_and_only_not_sent_again() {
    let limits = ReplayLimits::default();
    let over = Err(NotReplayable::OverLimit);
    let check = |len: usize, hint: Hint, after_503: Result<(), NotReplayable>| {
        let frames = (0..len.div_ceil(16_384)).map(|i| bytes((len - i * 16_384).min(16_384)));
        let (tape, _) = taped(frames, hint, &limits);
        // The connection was refused: not one byte has left.
        drop(start(&tape));
        assert_eq!(tape.replayable(), Ok(()), "{len} bytes, refused");

        // The callee answers 503 after the whole body; the caller's data is all sent.
        assert_eq!(read(&mut start(&tape)).data.len(), len);
        assert_eq!(tape.replayable(), after_503, "{len} bytes, {hint:?}");
        assert_eq!(tape.attempt(Attempt::FIRST).map(drop), after_503);
        assert!(limits.in_use() <= 65_536);
        assert_eq!(limits.in_use() == 0, len == 0 || after_503.is_err());
    };

    for hint in [Hint::Exact, Hint::Unknown] {
        check(0, hint, Ok(()));
        check(1, hint, Ok(()));
        check(65_535, hint, Ok(()));
        check(65_536, hint, Ok(()));
        check(65_537, hint, over);
        check(10 << 20, hint, over);
    }
}

#[test]
fn s08_trailers_count_towards_the_limit() {
    let check = |limit: usize, expected: Result<(), NotReplayable>| {
        let end = Event::Trailers(trailers("0"));
        let limits = ReplayLimits::new(limit, usize::MAX);
        let (tape, _) = taped([Event::data("four"), end], Hint::Unknown, &limits);
        let seen = read(&mut start(&tape));
        assert_eq!((seen.data.len(), seen.trailers.is_some()), (4, true));
        assert_eq!(tape.replayable(), expected, "limit of {limit} bytes");
    };

    // A field counts for its text (1 + 1) and 32 bytes.
    check(38, Ok(()));
    check(37, Err(NotReplayable::OverLimit));
}

#[test]
fn s09_uploads_together_stay_under_the_cap() {
    let limits = ReplayLimits::new(65_536, 1 << 20);
    let uploads: Vec<_> =
        (0..200).map(|_| taped((0..32).map(|_| bytes(8192)), Hint::Unknown, &limits).0).collect();
    let mut bodies: Vec<_> = uploads.iter().map(start).collect();
    let mut sent = vec![0; bodies.len()];
    for _ in 0..32 {
        for (body, sent) in bodies.iter_mut().zip(&mut sent) {
            if let Poll::Ready(Some(Ok(frame))) = step(body, Waker::noop()) {
                *sent += frame.into_data().map_or(0, |data| data.len());
            }
            assert!(limits.in_use() <= limits.total());
        }
    }

    assert_eq!(sent, vec![32 * 8192; 200], "every upload goes on unharmed");
    let stopped_by = |reason| {
        let stopped = uploads.iter().filter(|tape| tape.replayable() == Err(reason));
        stopped.count()
    };
    // 128 first frames fit into the cap, so at least 72 uploads find it full.
    let memory = stopped_by(NotReplayable::Memory);
    assert!(memory >= 72);
    assert_eq!(memory + stopped_by(NotReplayable::OverLimit), 200);
    assert_eq!(limits.in_use(), 0);
}

#[test]
fn s09_commit_lets_go_of_what_was_sent_and_keeps_nothing_more() {
    let limits = ReplayLimits::default();
    let events = [bytes(10), bytes(20), bytes(30), Event::Gate, bytes(40)];

    // Committed while the attempt reads live.
    let (tape, handle) = taped(events.clone(), Hint::Exact, &limits);
    let mut body = start(&tape);
    assert_eq!(read(&mut body).data.len(), 60);
    assert_eq!(limits.in_use(), 60);
    drop(tape);
    assert_eq!(limits.in_use(), 0);
    handle.open();
    assert_eq!(read(&mut body), Seen::data([7; 40], Stop::End));
    assert_eq!(limits.in_use(), 0);

    // Committed while the attempt replays.
    let (tape, handle) = taped(events, Hint::Exact, &limits);
    assert_eq!(read(&mut start(&tape)).data.len(), 60);
    let mut body = start(&tape);
    assert!(step(&mut body, Waker::noop()).is_ready());
    drop(tape);
    assert_eq!(limits.in_use(), 50);
    assert!(step(&mut body, Waker::noop()).is_ready());
    assert_eq!(limits.in_use(), 30);
    assert_eq!(body.size_hint().exact(), Some(70));
    assert_eq!(read(&mut body), Seen::data([7; 30], Stop::Pending));
    assert_eq!(limits.in_use(), 0);
    assert!(!handle.dropped());
    drop(body);
    assert!(handle.dropped());
}

#[test]
fn s09_a_stale_attempt_that_is_still_alive_holds_neither_memory_nor_the_upload() {
    let limits = ReplayLimits::default();
    let (tape, handle) = taped([bytes(10), Event::Gate], Hint::Unknown, &limits);
    let mut stale = start(&tape);
    read(&mut stale);
    let second = start(&tape);
    drop(tape);
    assert!(!handle.dropped());
    drop(second);

    assert_eq!(limits.in_use(), 0);
    assert!(handle.dropped());
    let superseded = Stop::Replay(ReplayError::Superseded);
    assert_eq!(read(&mut stale), Seen::data([], superseded));
}

#[test]
fn s09_a_frame_for_which_there_is_no_reader_is_let_go_of() {
    struct Owner(Arc<[u8; 9]>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &*self.0
        }
    }

    let frame = Arc::new([7; 9]);
    let data = Bytes::from_owner(Owner(Arc::clone(&frame)));
    let (tape, handle) = taped([Event::Data(data)], Hint::Unknown, &ReplayLimits::default());
    let stale = start(&tape);
    let mut second = start(&tape);
    handle.during_next_poll(move || {
        drop(start(&tape));
        drop(tape);
    });
    let superseded = Stop::Replay(ReplayError::Superseded);
    assert_eq!(read(&mut second), Seen::data([], superseded));

    assert_eq!(Arc::strong_count(&frame), 1, "nobody will ever read the frame");
    assert!(!stale.is_end_stream());
}
