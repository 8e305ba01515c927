//! What a replay body keeps to in any case.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full};

use super::super::*;
use super::reading::{Attempted, Seen, Stop, bytes, read, start, step, taped};
use super::script::{Event, Hint, Script, ScriptError, Wakes, trailers};

#[test]
fn an_error_of_the_caller_reaches_the_attempt_as_it_is_and_ends_replay() {
    let limits = ReplayLimits::default();
    let (tape, handle) = taped([Event::data("a"), Event::Fail], Hint::Unknown, &limits);
    let mut body = start(&tape);

    assert_eq!(read(&mut body), Seen::data("a", Stop::Script(ScriptError)));
    assert_eq!(tape.replayable(), Err(NotReplayable::Error));
    assert_eq!(limits.in_use(), 0);
    assert!(handle.dropped());
    assert_eq!(read(&mut body), Seen::default());
    assert!(!body.is_end_stream());
}

#[test]
fn a_waker_that_drops_the_tape_does_not_deadlock() {
    struct Owner(#[expect(dead_code, reason = "dropped with the waker")] Mutex<Tape<Script>>);
    impl Wake for Owner {
        fn wake(self: Arc<Self>) {}
    }

    let limits = ReplayLimits::default();
    let (tape, handle) = taped([bytes(3), Event::Gate, bytes(4)], Hint::Exact, &limits);
    let mut body = start(&tape);
    let owner = Waker::from(Arc::new(Owner(Mutex::new(tape))));
    assert!(step(&mut body, &owner).is_ready());
    assert!(step(&mut body, &owner).is_pending());
    drop(owner);
    assert_eq!(limits.in_use(), 3);

    // The body and the tape forget the waker, and with it goes the tape.
    assert!(step(&mut body, Waker::noop()).is_pending());
    assert_eq!(limits.in_use(), 0);
    handle.open();
    assert_eq!(read(&mut body), Seen::data([7; 4], Stop::End));
}

#[test]
fn an_attempt_that_is_over_leaves_no_waker_behind() {
    let check = |name: &str, events: &[Event], tells_end: bool, finish: &dyn Fn(Attempted)| {
        let (script, handle) = Script::new(events.to_vec(), Hint::Unknown, tells_end);
        let tape = Tape::new(script, &ReplayLimits::default());
        let wakes = Arc::new(Wakes::default());
        let mut body = start(&tape);
        assert!(step(&mut body, &Waker::from(wakes.clone())).is_pending());
        // The caller's body keeps one until it wakes, the tape one until the attempt is over.
        assert_eq!(Arc::strong_count(&wakes), 3, "{name}");
        handle.open();
        finish(body);
        assert_eq!(Arc::strong_count(&wakes), 1, "{name}");
        drop(tape);
    };
    let whole = |mut body: Attempted| {
        assert_eq!(read(&mut body).stop, Stop::End);
        // What is over keeps nothing alive, also if it stays.
        std::mem::forget(body);
    };

    check("dropped", &[Event::Gate], false, &drop);
    check("last frame", &[Event::Gate, Event::data("a")], true, &whole);
    check("end", &[Event::Gate, Event::data("a")], false, &whole);
}

#[test]
fn an_empty_body_needs_no_tape() {
    let (script, handle) = Script::new([], Hint::Exact, true);
    let tape = Tape::new(script, &ReplayLimits::new(0, 0));
    assert!(handle.dropped(), "nothing is kept");

    for number in [Attempt::FIRST, Attempt::FIRST.next()] {
        let mut body = Box::pin(tape.attempt(number).expect("replayable"));
        assert_eq!(body.attempt(), number);
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
        assert_eq!(read(&mut body), Seen::default());
    }
    assert_eq!(tape.digest(), Some(empty_digest()));
}

#[test]
fn a_body_sent_once_is_passed_through() {
    let check = |hint: Hint, tells_end: bool, events: &[Event], digest: Option<u64>| {
        let (script, handle) = Script::new(events.to_vec(), hint, tells_end);
        let cell = Arc::new(DigestCell::new(100));
        let mut body: Attempted =
            Box::pin(ReplayBody::once(script, Attempt::FIRST, Some(Arc::clone(&cell))));
        for _ in events {
            let (rest, exact) = (handle.rest(), body.size_hint().exact());
            let left: u64 = rest.iter().map(Event::len).sum();
            assert_eq!(exact, (hint == Hint::Exact).then_some(left));
            assert_eq!(body.is_end_stream(), tells_end && rest.is_empty());
            match (&rest[0], step(&mut body, Waker::noop())) {
                (Event::Data(sent), Poll::Ready(Some(Ok(frame)))) => {
                    let data = frame.into_data().expect("data");
                    assert_eq!(data.as_ptr(), sent.as_ptr(), "not copied");
                    assert_eq!(data, sent);
                }
                (Event::Trailers(sent), Poll::Ready(Some(Ok(frame)))) => {
                    assert_eq!(frame.trailers_ref(), Some(sent));
                }
                (Event::Fail, Poll::Ready(Some(Err(error)))) => {
                    assert_eq!(error.downcast_ref(), Some(&ScriptError));
                }
                (Event::Gate | Event::Yield, Poll::Pending) => handle.open(),
                (event, polled) => panic!("{event:?} gave {polled:?}"),
            }
        }
        assert_eq!(cell.digest(), digest, "{events:?}, {hint:?}, {tells_end}");
    };
    let known = {
        let cell = DigestCell::new(2);
        cell.frame(&Frame::data(Bytes::from_static(b"ab")), true);
        cell.digest()
    };
    let (a, b) = (|| Event::data("a"), || Event::data("b"));

    check(Hint::Exact, false, &[a(), Event::Gate, b()], known);
    check(Hint::Unknown, true, &[a(), Event::Yield, b()], known);
    check(Hint::Unknown, false, &[a(), b()], None);
    check(Hint::Unknown, false, &[a(), b(), Event::Trailers(trailers("0"))], known);
    check(Hint::Unknown, false, &[a(), Event::Fail], None);
    check(Hint::Exact, true, &[bytes(101)], None);
}

#[test]
fn a_tape_and_a_body_sent_once_agree_on_the_digest() {
    let limits = ReplayLimits::default();
    let events: Vec<_> = (0..300).map(bytes).collect();
    let (tape, _) = taped(events.clone(), Hint::AtLeast, &limits);
    let mut body = start(&tape);
    assert_eq!(tape.digest(), None);
    read(&mut body);

    let cell = Arc::new(DigestCell::new(limits.per_request()));
    let script = Script::new(events, Hint::Exact, true).0;
    read(&mut Box::pin(ReplayBody::once(script, Attempt::FIRST, Some(cell.clone()))));
    assert_eq!(tape.digest(), cell.digest());
    assert!(cell.digest().is_some());
}

#[tokio::test]
async fn data_of_any_kind_becomes_bytes() {
    let data = || Buf::chain(&b"two "[..], &b"parts"[..]);
    let once = ReplayBody::once(Full::new(data()), Attempt::FIRST, None);
    let tape = Tape::new(Full::new(data()), &ReplayLimits::default());
    let first = tape.attempt(Attempt::FIRST).expect("replayable");
    let empty = ReplayBody::once(Empty::<Bytes>::new(), Attempt::FIRST, None);

    let check = async |body: Pin<&mut (dyn Body<Data = Bytes, Error = BoxError> + Send)>,
                       expected: &str| {
        assert_eq!(body.collect().await.expect("a body").to_bytes(), expected);
    };
    check(pin!(once), "two parts").await;
    check(pin!(first), "two parts").await;
    check(pin!(tape.attempt(Attempt::FIRST).expect("replayable")), "two parts").await;
    check(pin!(empty), "").await;
}

#[test]
fn a_replay_body_can_go_where_the_callers_body_can() {
    fn sendable<B: Body + Send + Unpin + 'static>(_: &B)
    where
        B::Data: Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
    }
    fn movable<T: Send + Sync>(_: &T) {}

    let tape = Tape::new(Full::new(Bytes::from_static(b"x")), &ReplayLimits::default());
    sendable(&tape.attempt(Attempt::FIRST).expect("replayable"));
    sendable(&ReplayBody::once(
        tape.attempt(Attempt::FIRST).expect("replayable"),
        Attempt::FIRST,
        None,
    ));
    movable(&tape);
}

#[test]
fn reasons_are_spelled_as_in_metrics() {
    let spelled = NotReplayable::ALL.map(NotReplayable::as_str);
    assert_eq!(spelled, ["over-limit", "memory", "error"]);
}
