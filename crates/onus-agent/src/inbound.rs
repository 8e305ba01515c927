//! One request being served, as the hosts hold it.

mod record;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use http::{HeaderMap, HeaderValue};
use onus_core::{
    Arm, Circumstances, ClaimVerdict, InboundCall, Lot, Mode, OutboundCall, SlotId, Stop,
    Timestamp, Tries,
};

use crate::agent::Agent;
use crate::correlator::Token;
use crate::edges::{Edge, lock};
use crate::procedures::{ProcedureId, ServedProcedure};
use crate::symbols::{Procedure, Symbol};
use crate::wire::{self, ClaimText};

pub use self::record::{Placed, Relay};

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

/// What is kept of a call without success: who is said to be at fault, and how to recognise a
/// repeat of it.
struct CallNote {
    slot: SlotId,
    identity: CallIdentity,
    origin: Option<Origin>,
}

/// What makes two calls of one request the same logical call: the callee, a hash of method and
/// path, and a digest of the body where it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallIdentity {
    pub(crate) callee: Symbol,
    pub(crate) head: u64,
    pub(crate) body: Option<u64>,
}

/// The service that first failed, and how far below it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its name.
    pub service: Arc<str>,
    /// Hops from the service that holds this value; 0 is that service itself.
    pub hops: u8,
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

    /// `inner`, which was served within this request, has been answered with these headers. Where
    /// its claim is found on the answer to this one, the two are the same request at two layers,
    /// and the inner one knows whose error it is.
    pub fn answered_within(&self, inner: &Self, headers: &HeaderMap) {
        if inner.is_of(self.agent())
            && let Some(claim) = headers.get(&wire::ONUS_CLAIM)
        {
            lock(&self.0.progress).within = Within::Said(claim.clone());
        }
    }

    /// Whether the claim on an answer is that of a layer within this one.
    fn stands(&self, headers: &HeaderMap) -> bool {
        let within = &mut lock(&self.0.progress).within;
        let stands = match within {
            Within::Said(claim) => headers.get(&wire::ONUS_CLAIM) == Some(&*claim),
            Within::Unknown | Within::Stands => false,
        };
        if stands {
            *within = Within::Stands;
        }
        stands
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

    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.0.agent
    }

    pub(crate) fn is_of(&self, agent: &Agent) -> bool {
        std::ptr::eq(&*self.0.agent, agent)
    }

    pub(crate) fn token(&self) -> &OnceLock<Token> {
        &self.0.token
    }

    /// Makes the answer's headers say whose error it is; a success says nothing.
    ///
    /// `headers` is the block that carries the outcome: the head of an HTTP answer, the trailers
    /// of a gRPC one. To be called once; a second call changes nothing but to take copied claims
    /// out.
    pub fn answer(&self, failed: bool, grpc: bool, headers: &mut HeaderMap, now: Timestamp) {
        if !failed {
            self.answer_ok(headers);
            return;
        }
        let agent = &self.0.agent;
        let shield = agent.switches().shield_holds(now);
        if self.arm().is_off() && !shield {
            return;
        }
        let stands = self.stands(headers);
        if !stands {
            self.strip(headers);
        }
        if !self.advance(Stage::Answered) || self.is_faulted() || stands {
            return;
        }
        let at = Circumstances {
            shield,
            silent_claims: agent.silent_claims(),
            untied_calls: agent.untied_calls() != self.0.untied_before
                || self.0.untied_elsewhere.load(Ordering::Relaxed),
        };
        let judged = self.step(|progress| self.judge(progress, at)).flatten();
        let Some((verdict, origin)) = judged else { return };
        agent.tell_claim(self, &verdict, &origin);
        if !agent.trusts_callers() {
            return;
        }
        let text = ClaimText {
            reason: Some(verdict.reason),
            attempt: Some(self.0.attempt),
            hops: Some(origin.hops),
            origin: Some(origin.service.clone()),
            ..ClaimText::new(verdict.claim)
        };
        if !agent.claims().replace_claim(headers, Some(&text)) {
            return;
        }
        if verdict.vetoes {
            wire::write_vetoes(headers, grpc);
        }
        self.served_procedure().counters.arm(self.arm()).claim(&verdict);
    }

    /// [`Self::answer`] for a success, which needs no time.
    pub fn answer_ok(&self, headers: &mut HeaderMap) {
        if !self.arm().is_off() {
            self.strip(headers);
        }
    }

    /// Takes claims that the application copied out of its answer, and all else of Onus's where
    /// the caller is outside of the trust boundary.
    fn strip(&self, headers: &mut HeaderMap) {
        let agent = &self.0.agent;
        if agent.trusts_callers() {
            agent.claims().replace_claim(headers, None);
        } else {
            agent.claims().strip_untrusted(headers);
        }
    }

    /// The claim, and the service that first failed.
    fn judge(&self, progress: &Progress, at: Circumstances) -> Option<(ClaimVerdict, Origin)> {
        let verdict = progress.call.claim(at)?;
        let origin = match verdict.deciding {
            None => Origin { service: self.0.agent.service().clone(), hops: 0 },
            Some(slot) => {
                let note = progress.notes.iter().rev().find(|note| note.slot == slot);
                let below = note.and_then(|note| note.origin.clone());
                let below = below.unwrap_or_else(|| self.callee_of(&progress.call, slot));
                Origin { hops: below.hops.saturating_add(1), ..below }
            }
        };
        Some((verdict, origin))
    }

    /// The callee of a call whose reply named no origin.
    fn callee_of(&self, call: &InboundCall, slot: SlotId) -> Origin {
        let edge = call.edge(slot).and_then(|id| self.0.agent.edge_by_id(id));
        let service = match edge {
            Some(edge) => self.0.agent.symbols().name(edge.key.callee),
            None => self.0.agent.service(),
        };
        Origin { service: service.clone(), hops: 0 }
    }

    /// The request is over: its answer has been read to the end, or broke on the way.
    ///
    /// Exactly one of this and [`Self::cancelled`] counts, the first. `now` matters where the
    /// request is filed under a token.
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

    /// A logical call starts, or goes on as a repeat of `identity`. `None` where the request is
    /// finished, as for a task that outlives it, or has too many calls. `start` makes the call from
    /// the attempts of the one it repeats, if any, and its first attempt counts as under way.
    pub(crate) fn call_started(
        &self,
        edge: &Edge,
        identity: CallIdentity,
        start: impl FnOnce(Option<Tries>) -> OutboundCall,
    ) -> Option<(SlotId, OutboundCall)> {
        self.step(|progress| {
            if progress.stage == Stage::Finished {
                return None;
            }
            let repeated = progress
                .notes
                .iter()
                .position(|note| identity.body.is_some() && note.identity == identity);
            let (slot, tries) = match repeated {
                Some(at) => {
                    let slot = progress.notes.swap_remove(at).slot;
                    (slot, Some(progress.call.on_repeated(slot)))
                }
                None => match progress.call.on_started(edge.id, edge.class()) {
                    Some(slot) => (slot, None),
                    None => {
                        self.0.agent.overflowing.calls.add();
                        return None;
                    }
                },
            };
            let call = start(tries);
            progress.call.on_attempt(slot, call.tries());
            Some((slot, call))
        })
        .flatten()
    }

    /// Whether a call like this has ended without success in this request, so that it is worth
    /// knowing the body of the next one.
    #[must_use]
    pub fn may_be_repeat(&self, edge: &Edge, head: u64) -> bool {
        lock(&self.0.progress).notes.iter().any(|note| {
            note.identity.head == head
                && note.identity.callee == edge.key.callee
                && note.identity.body.is_some()
        })
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.0.marked
    }

    pub(crate) fn on_attempt(&self, slot: SlotId, tries: &Tries) {
        self.step(|progress| progress.call.on_attempt(slot, tries));
    }

    /// The call ended ok; `closed` if its answer has been read to the end as well.
    pub(crate) fn call_ok(&self, slot: SlotId, closed: bool) {
        self.step(|Progress { call, .. }| {
            call.on_ok(slot);
            if closed {
                call.on_closed(slot);
            }
        });
    }

    /// The answer of a call that ended ok has been read to the end.
    pub(crate) fn call_closed(&self, slot: SlotId) {
        self.step(|progress| progress.call.on_closed(slot));
    }

    /// The call ended without success: for good with `stop`, or because nobody waits for it.
    pub(crate) fn call_failed(
        &self,
        slot: SlotId,
        tries: &Tries,
        stop: Option<Stop>,
        identity: CallIdentity,
        origin: Option<Origin>,
    ) {
        self.step(|Progress { call, notes, .. }| {
            call.on_attempt(slot, tries);
            match stop {
                Some(stop) => call.on_failed(slot, stop),
                None => call.on_abandoned(slot),
            }
            if notes.len() < NOTES_MAX {
                notes.push(CallNote { slot, identity, origin });
            } else {
                self.0.agent.overflowing.failed_calls.add();
            }
        });
    }
}

/// The most failed calls of one request that are remembered for repeats and origins.
const NOTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AgentConfig;

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
