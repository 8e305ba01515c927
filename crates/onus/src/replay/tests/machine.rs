//! All poll patterns: random bodies, limits and orders of events, each step against the model.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame};
use proptest::prelude::*;
use proptest::test_runner::Config;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::super::*;
use super::model::{Model, Outcome, Setup, Stop};
use super::script::{Event, Handle, Hint, Script, ScriptError, Wakes, trailers};

prop_state_machine! {
    #![proptest_config(Config { cases: 1_000, ..Config::default() })]

    #[test]
    fn every_poll_pattern_reads_what_the_caller_sent(sequential 1..60 => Rig);
}

/// What a caller of the tape does. Attempts are named by their age: 0 is the youngest.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Begin,
    Poll(usize),
    /// Polls as long as there are frames.
    Read(usize),
    /// Polls, and while the caller's body is being polled something else happens.
    PollWhile(usize, Meanwhile),
    Drop(usize),
    Release,
    Open,
}

/// What happens inside a poll of the caller's body, as another thread could do it.
#[derive(Clone, Debug)]
pub(super) enum Meanwhile {
    Begin,
    BeginAndPoll(usize),
    BeginAndGiveUp,
    Release,
}

/// Only makes moves up; the rules are in the model, which has to see the sizes of the pieces.
pub(super) struct Moves;

impl ReferenceStateMachine for Moves {
    type State = Setup;
    type Transition = Move;

    fn init_state() -> BoxedStrategy<Setup> {
        let data = |len| prop::collection::vec(any::<u8>(), len).prop_map(Bytes::from);
        let event = prop_oneof![
            6 => data(1..4).prop_map(Event::Data),
            2 => data(0..20).prop_map(Event::Data),
            1 => Just(Event::Gate),
            1 => Just(Event::Yield),
        ];
        let last = prop_oneof![
            2 => Just(None),
            2 => Just(Some(Event::Trailers(trailers("0")))),
            1 => Just(Some(Event::Fail)),
        ];
        let hint = prop_oneof![
            Just(Hint::Exact),
            Just(Hint::AtLeast),
            Just(Hint::AtMost),
            Just(Hint::Unknown),
        ];
        let bytes = || prop_oneof![3 => Just(1000_usize), 2 => 0..80_usize];
        let events = prop::collection::vec(event, 0..40);
        (events, last, hint, any::<bool>(), bytes(), bytes())
            .prop_map(|(mut events, last, hint, tells_end, limit, total)| {
                events.extend(last);
                Setup { events, hint, tells_end, limit, total }
            })
            .boxed()
    }

    fn transitions(_: &Setup) -> BoxedStrategy<Move> {
        let who = || prop_oneof![5 => Just(0_usize), 2 => 0..4_usize];
        let meanwhile = prop_oneof![
            2 => Just(Meanwhile::Begin),
            2 => (1..12_usize).prop_map(Meanwhile::BeginAndPoll),
            1 => Just(Meanwhile::BeginAndGiveUp),
            1 => Just(Meanwhile::Release),
        ];
        prop_oneof![
            4 => Just(Move::Begin),
            16 => who().prop_map(Move::Poll),
            6 => who().prop_map(Move::Read),
            4 => (who(), meanwhile).prop_map(|(who, what)| Move::PollWhile(who, what)),
            2 => who().prop_map(Move::Drop),
            1 => Just(Move::Release),
            8 => Just(Move::Open),
        ]
        .boxed()
    }

    fn apply(setup: Setup, _: &Move) -> Setup {
        setup
    }
}

/// The tape under test and the model beside it.
pub(super) struct Rig {
    shared: Arc<Mutex<Table>>,
    script: Handle,
    limits: ReplayLimits,
}

/// What the moves act on, also from inside a poll.
struct Table {
    tape: Option<Tape<Script>>,
    attempts: Vec<Attempted>,
    model: Model,
}

struct Attempted {
    // Taken out while it is being polled, and for good when it is dropped.
    body: Option<Pin<Box<ReplayBody<Script>>>>,
    wakes: Arc<Wakes>,
    // The number of wakes when it said that it is pending.
    pending_since: Option<usize>,
}

impl StateMachineTest for Rig {
    type SystemUnderTest = Self;
    type Reference = Moves;

    fn init_test(setup: &Setup) -> Self {
        let limits = ReplayLimits::new(setup.limit, setup.total);
        let (script, handle) = Script::new(setup.events.clone(), setup.hint, setup.tells_end);
        Self {
            shared: Arc::new(Mutex::new(Table {
                tape: Some(Tape::new(script, &limits)),
                attempts: Vec::new(),
                model: Model::new(setup.clone()),
            })),
            script: handle,
            limits,
        }
    }

    fn apply(rig: Self, _: &Setup, step: Move) -> Self {
        match step {
            Move::Begin => with(&rig.shared, |table| {
                table.begin();
            }),
            Move::Poll(who) => {
                rig.poll(who, None);
            }
            Move::Read(who) => while rig.poll(who, None) {},
            Move::PollWhile(who, what) => {
                rig.poll(who, Some(what));
            }
            Move::Drop(who) => {
                if let Some(k) = with(&rig.shared, |table| table.alive(who)) {
                    drop_attempt(&rig.shared, k);
                }
            }
            Move::Release => release(&rig.shared),
            Move::Open => {
                with(&rig.shared, |table| table.model.open());
                rig.script.open();
            }
        }
        rig
    }

    fn check_invariants(rig: &Self, _: &Setup) {
        with(&rig.shared, |table| {
            assert_eq!(rig.limits.in_use(), table.model.in_use());
            assert_eq!(rig.script.dropped(), !table.model.needs_original());
            if let Some(tape) = &table.tape {
                assert_eq!(tape.replayable(), table.model.replayable());
                let digest = table.model.knows_digest().then(|| digest(table.model.data()));
                assert_eq!(tape.digest(), digest);
            }
            for (k, attempt) in table.attempts.iter().enumerate() {
                let Some(body) = &attempt.body else { continue };
                table.model.check_size(k, body.size_hint(), body.is_end_stream());
                if let Some(wakes) = attempt.pending_since
                    && table.model.expect(k, false) != Outcome::Pending
                {
                    assert!(attempt.wakes.count() > wakes, "attempt {k} waits for ever");
                }
            }
        });
    }

    fn teardown(rig: Self, _: Setup) {
        release(&rig.shared);
        let attempts = with(&rig.shared, |table| std::mem::take(&mut table.attempts));
        drop(attempts);
        assert_eq!(rig.limits.in_use(), 0);
        assert!(rig.script.dropped(), "the caller's body is let go of");
    }
}

impl Rig {
    /// Polls the attempt of that age; true when it gave a frame.
    fn poll(&self, who: usize, meanwhile: Option<Meanwhile>) -> bool {
        let Some((k, polls_original)) = with(&self.shared, |table| {
            let k = table.alive(who)?;
            Some((k, table.model.polls_original(k)))
        }) else {
            return false;
        };
        let hooked = meanwhile.is_some();
        if let Some(what) = meanwhile {
            let shared = Arc::clone(&self.shared);
            self.script.during_next_poll(move || match what {
                Meanwhile::Begin => with(&shared, |table| {
                    table.begin();
                }),
                Meanwhile::BeginAndPoll(times) => {
                    if let Some(k) = with(&shared, Table::begin) {
                        for _ in 0..times {
                            poll(&shared, k, true);
                        }
                    }
                }
                Meanwhile::BeginAndGiveUp => {
                    if let Some(k) = with(&shared, Table::begin) {
                        drop_attempt(&shared, k);
                        release(&shared);
                    }
                }
                Meanwhile::Release => release(&shared),
            });
        }
        let outcome = poll(&self.shared, k, false);
        let ran = hooked && !self.script.forget_hook();
        assert_eq!(ran, hooked && polls_original, "the original was polled or not as it should");
        matches!(outcome, Outcome::Data(_) | Outcome::Trailers(_))
    }
}

impl Table {
    /// Starts an attempt if the model says that one may start.
    fn begin(&mut self) -> Option<usize> {
        let begun = self.tape.as_ref()?.attempt(Attempt::FIRST);
        assert_eq!(begun.as_ref().map(drop), self.model.replayable().as_ref().map(drop));
        let body = Box::pin(begun.ok()?);
        self.model.begin();
        self.attempts.push(Attempted {
            body: Some(body),
            wakes: Arc::default(),
            pending_since: None,
        });
        Some(self.attempts.len() - 1)
    }

    /// The attempt of that age, of those that are alive.
    fn alive(&self, age: usize) -> Option<usize> {
        let alive = self.attempts.iter().enumerate().rev();
        let mut alive = alive.filter(|(_, attempt)| attempt.body.is_some());
        alive.nth(age).map(|(k, _)| k)
    }
}

/// Polls attempt `k` and compares with the model; `lent` inside a poll of the caller's body.
fn poll(shared: &Arc<Mutex<Table>>, k: usize, lent: bool) -> Outcome {
    let (mut body, wakes, attempts) = with(shared, |table| {
        let attempts = table.attempts.len();
        let attempt = &mut table.attempts[k];
        (attempt.body.take().expect("alive"), attempt.wakes.clone(), attempts)
    });
    let waker = Waker::from(Arc::clone(&wakes));
    let wakes = wakes.count();
    let polled = body.as_mut().poll_frame(&mut Context::from_waker(&waker));
    with(shared, |table| {
        let (outcome, bytes) = observed(polled);
        let taken_over = table.attempts.len() > attempts;
        if taken_over {
            assert_eq!(outcome, table.model.polled_too_late(k));
        } else {
            let expected = table.model.expect(k, lent);
            match (&expected, &outcome) {
                (Outcome::Replayed, Outcome::Data(data)) => {
                    assert!(!data.is_empty() && data.len() <= table.model.taken_from(k));
                    assert!(table.model.data_from(k).starts_with(data));
                }
                _ => assert_eq!(outcome, expected),
            }
            if !(lent && outcome == Outcome::Pending) {
                table.model.polled(k, &expected, bytes);
            }
        }
        table.attempts[k].pending_since = (outcome == Outcome::Pending).then_some(wakes);
        table.attempts[k].body = Some(body);
        if table.model.attempts[k].stop == Some(Stop::Whole) {
            assert_eq!(table.model.data_from(k), b"", "ended early");
        }
        outcome
    })
}

fn observed(polled: Poll<Option<Result<Frame<Bytes>, BoxError>>>) -> (Outcome, usize) {
    match polled {
        Poll::Pending => (Outcome::Pending, 0),
        Poll::Ready(None) => (Outcome::End, 0),
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            Ok(data) => {
                let len = data.len();
                (Outcome::Data(data), len)
            }
            Err(frame) => (Outcome::Trailers(frame.into_trailers().expect("trailers")), 0),
        },
        Poll::Ready(Some(Err(error))) => match error.downcast::<ReplayError>() {
            Ok(error) => (Outcome::Failed(*error), 0),
            Err(error) => {
                assert!(error.is::<ScriptError>());
                (Outcome::Script, 0)
            }
        },
    }
}

fn drop_attempt(shared: &Arc<Mutex<Table>>, k: usize) {
    let body = with(shared, |table| {
        table.model.attempts[k].dropped = true;
        table.attempts[k].body.take()
    });
    drop(body);
}

fn release(shared: &Arc<Mutex<Table>>) {
    let tape = with(shared, |table| {
        table.model.release();
        table.tape.take()
    });
    drop(tape);
}

fn with<T>(shared: &Arc<Mutex<Table>>, act: impl FnOnce(&mut Table) -> T) -> T {
    act(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The digest of data by the way that does not lead over a tape.
fn digest(data: &[u8]) -> u64 {
    let cell = DigestCell::new(usize::MAX);
    cell.frame(&Frame::data(Bytes::copy_from_slice(data)), true);
    cell.digest().expect("complete")
}
