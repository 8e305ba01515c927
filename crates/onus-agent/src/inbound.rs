//! One request being served, as the hosts hold it.

mod answer;
mod calls;
mod record;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use http::HeaderValue;
use onus_core::{Arm, InboundCall, Lot, Mode, SlotId, Timestamp};

use crate::agent::Agent;
use crate::correlator::Token;
use crate::edges::lock;
use crate::procedures::{ProcedureId, ServedProcedure};
use crate::symbols::Procedure;

pub use self::answer::Origin;
pub(crate) use self::calls::CallIdentity;
pub use self::record::{Placed, Relay};

use self::calls::{CallNote, NOTES_MAX};

/// One request being served. Cheap to clone: all clones are the same request.
#[derive(Clone)]
pub struct Inbound(Arc<Served>);

struct Served {
    agent: Arc<Agent>,
    procedure: ProcedureId,
    mode: Mode,
    lot: Lot,
    marked: bool,
    /// Which attempt of its caller this request is.
    attempt: u32,
    deadline: Option<Timestamp>,
    token: OnceLock<Token>,
    /// Whether something broke inside Onus on behalf of the request.
    faulted: AtomicBool,
    /// Calls of the whole service that could not be tied to a request when this one arrived.
    untied_before: u64,
    /// Whether calls could not be tied to a request on another worker that shares no memory.
    untied_elsewhere: AtomicBool,
    /// Whether another worker serves the request, and this one makes a call for it.
    relayed: bool,
    progress: Mutex<Progress>,
}

struct Progress {
    call: InboundCall,
    notes: Vec<CallNote>,
    /// The calls that were taken over from the request's record, in its order.
    adopted: Vec<SlotId>,
    stage: Stage,
    within: Within,
}

/// What is known of a layer within this one that serves the same request.
#[derive(Default)]
enum Within {
    /// Nothing.
    #[default]
    Unknown,
    /// A request that was served within this one, perhaps another one, ended in this claim.
    Said(HeaderValue),
    /// Its claim stands on the answer.
    Stands,
}

/// How far a request has come. Each step happens once, whoever takes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    Answered,
    /// The caller has gone. A handler that goes on all the same still serves this request: its
    /// calls carry the mark and keep to the deadline.
    Cancelled,
    Finished,
}

/// What [`Agent::request_arrived`] found out.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) procedure: ProcedureId,
    pub(crate) mode: Mode,
    pub(crate) lot: Lot,
    pub(crate) marked: bool,
    pub(crate) attempt: u32,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) untied_before: u64,
}

impl Inbound {
    pub(crate) fn new(agent: Arc<Agent>, arrival: Arrival) -> Self {
        Self::made(agent, arrival, false)
    }

    /// A request that another worker serves.
    fn relayed(agent: Arc<Agent>, arrival: Arrival) -> Self {
        Self::made(agent, arrival, true)
    }

    #[inline]
    fn made(agent: Arc<Agent>, arrival: Arrival, relayed: bool) -> Self {
        let arm = arrival.mode.arm(arrival.lot, 0);
        Self(Arc::new(Served {
            agent,
            procedure: arrival.procedure,
            mode: arrival.mode,
            lot: arrival.lot,
            marked: arrival.marked,
            attempt: arrival.attempt,
            deadline: arrival.deadline,
            token: OnceLock::new(),
            faulted: AtomicBool::new(false),
            untied_before: arrival.untied_before,
            untied_elsewhere: AtomicBool::new(false),
            relayed,
            progress: Mutex::new(Progress {
                call: InboundCall::new(arm, arrival.marked),
                notes: Vec::new(),
                adopted: Vec::new(),
                stage: Stage::Serving,
                within: Within::default(),
            }),
        }))
    }

    /// A request that arrives while `around` is served: perhaps the same one, at a second layer.
    /// The first has taken the mark out of its headers, and calls for it would carry the mark too.
    #[must_use]
    pub fn within(mut self, around: Option<&Self>) -> Self {
        let marked = around.is_some_and(|around| around.is_marked() && around.is_of(self.agent()));
        if marked && let Some(served) = Arc::get_mut(&mut self.0) {
            let arm = served.mode.arm(served.lot, 0);
            served.marked = true;
            lock(&served.progress).call = InboundCall::new(arm, true);
        }
        self
    }

    /// The procedure that is served.
    #[must_use]
    pub fn procedure(&self) -> Procedure {
        self.served_procedure().procedure
    }

    fn served_procedure(&self) -> &ServedProcedure {
        self.0.agent.procedures().get(self.0.procedure)
    }

    /// Whether ownership is in force, observed or off for this request.
    #[must_use]
    pub fn arm(&self) -> Arm {
        self.0.mode.arm(self.0.lot, 0)
    }

    /// When the caller gives up; `None` where it did not say.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.0.deadline
    }

    /// The arm for a call on `edge`, whose enforce share the brake may have lowered.
    pub(crate) fn arm_on(&self, halvings: u8) -> Arm {
        self.0.mode.arm(self.0.lot, halvings)
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.0.marked
    }

    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.0.agent
    }

    pub(crate) fn is_of(&self, agent: &Agent) -> bool {
        std::ptr::eq(&*self.0.agent, agent)
    }

    pub(crate) fn token(&self) -> &OnceLock<Token> {
        &self.0.token
    }

    /// The request is over: its answer has been read to the end, or broke on the way.
    ///
    /// Exactly one of this and [`Self::cancelled`] counts, the first. `now` matters where the
    /// request is filed under a token.
    #[inline]
    pub fn finished(&self, failed: bool, now: Timestamp) {
        let agent = &self.0.agent;
        let counters = &self.served_procedure().counters;
        let mut progress = lock(&self.0.progress);
        if progress.stage >= Stage::Cancelled {
            return;
        }
        progress.stage = Stage::Finished;
        let arm = counters.arm(self.arm());
        if failed { &arm.failed } else { &arm.ok }.add();
        let taught = if self.is_faulted() || matches!(progress.within, Within::Stands) {
            None
        } else {
            agent.guarded(|| {
                progress.call.evidence(failed, |edge, outcome| {
                    if let Some(edge) = agent.edge_by_id(edge) {
                        edge.lasting.counters.teach(outcome, failed);
                    }
                })
            })
        };
        drop(progress);
        if taught == Some(true) {
            counters.clean[usize::from(failed)].add();
        }
        agent.forget(self, false, now);
    }

    /// Files the request with its agent; see [`Agent::file`].
    pub fn file<'a>(&self, ids: impl Iterator<Item = &'a [u8]>, now: Timestamp) -> Option<Token> {
        self.0.agent.file(self, ids, now)
    }

    /// Whether the request is filed under a token.
    #[must_use]
    pub fn is_filed(&self) -> bool {
        self.0.token.get().is_some()
    }

    /// The caller has gone before it had the whole answer: the request teaches nothing.
    pub fn cancelled(&self, now: Timestamp) {
        if self.advance(Stage::Cancelled) {
            self.served_procedure().counters.arm(self.arm()).cancelled.add();
            self.0.agent.forget(self, true, now);
        }
    }

    /// Whether the request has been forgotten.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.0.progress).stage >= Stage::Cancelled
    }

    /// Moves on to `stage`; false if the request has come that far before.
    fn advance(&self, stage: Stage) -> bool {
        let mut progress = lock(&self.0.progress);
        let advances = progress.stage < stage;
        if advances {
            progress.stage = stage;
        }
        advances
    }

    /// Something broke inside Onus: the request gets no claim and teaches nothing.
    pub(crate) fn fault(&self) {
        self.0.faulted.store(true, Ordering::Relaxed);
    }

    fn is_faulted(&self) -> bool {
        self.0.faulted.load(Ordering::Relaxed)
    }

    /// Takes a step in the account of the request; `None` after a fault.
    fn step<T>(&self, step: impl FnOnce(&mut Progress) -> T) -> Option<T> {
        let taken = self.0.agent.guarded(|| step(&mut lock(&self.0.progress)));
        if taken.is_none() {
            self.fault();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::config::AgentConfig;
    use crate::wire;

    #[test]
    fn a_panic_under_the_lock_costs_the_claim_only() {
        // [fault-1]
        let agent = Agent::new(&AgentConfig::new("a"), 0, Timestamp::ZERO).unwrap();
        let mut headers = HeaderMap::new();
        let arrive = |headers: &mut HeaderMap| {
            agent.request_arrived(headers, Procedure::NONE, 0, || Timestamp::ZERO)
        };
        let broken = arrive(&mut headers);
        assert_eq!(broken.step(|_| -> u8 { panic!("in a step") }), None);
        assert_eq!(broken.step(|progress| progress.notes.len()), Some(0), "the lock still opens");
        broken.answer(true, false, &mut headers, Timestamp::ZERO);
        broken.finished(true, Timestamp::ZERO);
        assert!(headers.is_empty(), "{headers:?}");
        assert_eq!(agent.faults.get(), 1);
        let next = arrive(&mut headers);
        next.answer(true, false, &mut headers, Timestamp::ZERO);
        assert!(headers.contains_key(&wire::ONUS_CLAIM));
    }
}
