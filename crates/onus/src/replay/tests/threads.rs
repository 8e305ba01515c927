//! Attempts on threads of their own: one takes over while the other is in the middle of a poll.

use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use http_body::Body;

use super::super::*;
use super::script::{Event, Hint, Script, trailers};

#[test]
fn an_attempt_on_another_thread_takes_over_without_loss() {
    // Within the limits the second attempt always starts; with the smaller limit the first one
    // passes it at some moment, and then the second must not start with a part of the body.
    let check = |limit: usize, round: usize, refused: Option<NotReplayable>| {
        let limits = ReplayLimits::new(limit, usize::MAX);
        let events = (0..40_u8)
            .flat_map(|i| [Event::Data(vec![i; 3].into()), Event::Yield])
            .chain([Event::Trailers(trailers("0"))]);
        let (script, handle) = Script::new(events, Hint::Unknown, true);
        let tape = Tape::new(script, &limits);
        let whole: Vec<u8> = (0..40).flat_map(|i| [i; 3]).collect();
        let barrier = Barrier::new(2);

        let first = tape.attempt(Attempt::FIRST).expect("nothing was read");
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                barrier.wait();
                block_on_whole(first)
            });
            barrier.wait();
            for _ in 0..round % 50 {
                thread::yield_now();
            }
            let second = tape.attempt(Attempt::FIRST.next()).map(block_on_whole);
            let first = first.join().expect("no panic");
            match second {
                Ok(second) => {
                    assert_eq!(second.as_ref(), Ok(&whole));
                    assert!(first == second || first == Err(ReplayError::Superseded));
                }
                Err(reason) => {
                    assert_eq!(Some(reason), refused);
                    assert_eq!(first, Ok(whole));
                }
            }
        });
        drop(tape);
        assert_eq!(limits.in_use(), 0);
        assert!(handle.dropped());
    };

    for round in 0..200 {
        check(1000, round, None);
        check(60, round, Some(NotReplayable::OverLimit));
    }
}

/// Reads a body with one trailer to its end, parked while it is pending.
fn block_on_whole(body: ReplayBody<Script>) -> Result<Vec<u8>, ReplayError> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut body = pin!(body);
    let (mut data, mut trailers) = (Vec::new(), 0);
    loop {
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Pending => thread::park(),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(piece) => data.extend(piece),
                Err(_) => trailers += 1,
            },
            Poll::Ready(Some(Err(error))) => return Err(*error.downcast().expect("superseded")),
            Poll::Ready(None) => {
                assert_eq!(trailers, 1);
                return Ok(data);
            }
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
