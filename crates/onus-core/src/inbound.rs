//! One request being served: what its outbound calls came to, and the claim on its error.

use core::cell::LazyCell;

use crate::claim::{CalleeClaim, Claim, ClaimReason};
use crate::criteria::Ending;
use crate::decision::Stop;
use crate::edge::{EdgeClass, EdgeId};
use crate::mode::Arm;
use crate::outbound::Tries;
use crate::slots::{Slot, SlotId, SlotState, Slots};

/// One request being served, from its arrival to its answer.
///
/// The host reports its outbound calls; [`Self::claim`] answers for the request's error, and
/// [`Self::evidence`] tells what the request teaches about its edges.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InboundCall {
    arm: Arm,
    marked: bool,
    slots: Slots,
}

/// The claim on an error, with all that explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimVerdict {
    /// What to send.
    pub claim: Claim,
    /// Why.
    pub reason: ClaimReason,
    /// The outbound call that decided, whose origin is passed on; `None` where the service itself
    /// is the origin.
    pub deciding: Option<SlotId>,
    /// Whether callers without Onus are told not to retry as well.
    pub vetoes: bool,
}

/// What the host knows of the answer beside the outbound calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Circumstances {
    /// Whether a shield holds.
    pub shield: bool,
    /// Whether the setting `silent-claims` is on.
    pub silent_claims: bool,
    /// Whether the service made calls, while it served the request, that could not be tied to any.
    pub untied_calls: bool,
}

/// What one request teaches about one edge (protocol §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeOutcome {
    /// All its calls ended ok.
    Ok,
    /// It failed, and no other edge that is to blame did.
    FailedAlone,
    /// It failed, and so did another edge that is to blame.
    FailedJointly,
}

impl InboundCall {
    /// A request that has just arrived, with the mark or without.
    #[must_use]
    pub fn new(arm: Arm, marked: bool) -> Self {
        Self { arm, marked, slots: Slots::default() }
    }

    /// How far ownership reaches for this request.
    #[must_use]
    pub const fn arm(&self) -> Arm {
        self.arm
    }

    /// Whether the request carries the mark.
    #[must_use]
    pub const fn is_marked(&self) -> bool {
        self.marked
    }

    /// A logical call starts. `None` where the request has 1,024 calls without success already:
    /// the call then cannot be tied to the request.
    pub fn on_started(&mut self, edge: EdgeId, class: EdgeClass) -> Option<SlotId> {
        self.slots.push(Slot {
            edge,
            class,
            tries: Tries::default(),
            state: SlotState::Open,
            ok_before: false,
            order: 0,
        })
    }

    /// The edge of a call.
    #[must_use]
    pub fn edge(&self, slot: SlotId) -> Option<EdgeId> {
        self.slots.get(slot).map(|slot| slot.edge)
    }

    /// The application repeats a call that did not end ok: the logical call goes on after these
    /// attempts.
    pub fn on_repeated(&mut self, slot: SlotId) -> Tries {
        self.slots.get_mut(slot).map_or_else(Tries::default, |slot| {
            slot.state = SlotState::Open;
            // An attempt that was given up under way has ended in silence.
            slot.tries.last = slot.tries.read();
            slot.tries.in_attempt = false;
            slot.tries
        })
    }

    pub(crate) const fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(crate) const fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// An attempt of the call has started or failed.
    pub fn on_attempt(&mut self, slot: SlotId, tries: &Tries) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.tries = *tries;
        }
    }

    /// The call was answered without an error.
    pub fn on_ok(&mut self, slot: SlotId) {
        self.end(slot, SlotState::Ok);
    }

    /// The call has failed for good; also after [`Self::on_ok`], when the answer's body broke.
    pub fn on_failed(&mut self, slot: SlotId, stop: Stop) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.state = SlotState::Failed(slot.tries.ending(stop));
        }
    }

    /// Nobody waits for the call any more, and it has no outcome.
    pub fn on_abandoned(&mut self, slot: SlotId) {
        self.end(slot, SlotState::Abandoned);
    }

    /// The call's answer has been read to its end.
    pub fn on_closed(&mut self, slot: SlotId) {
        if let Some(slot) = self.slots.get_mut(slot)
            && slot.state == SlotState::Ok
        {
            slot.state = SlotState::Closed;
        }
    }

    /// The claim on the request's error (protocol §4); `None` where nothing is sent.
    ///
    /// To be asked once, when the error answer is made: calls without an outcome are judged here.
    #[must_use]
    pub fn claim(&self, at: Circumstances) -> Option<ClaimVerdict> {
        if self.arm.is_off() && !at.shield {
            return None;
        }
        let blame = self.blame();
        let (claim, reason, deciding) = self.decide_claim(at, &blame);
        // A service that probes lets its callers without Onus decide for themselves; a shield
        // stops them all.
        let enforced = self.arm == Arm::Enforce && !blame.probed;
        let vetoes = claim.is_unclaimed() && (enforced || at.shield);
        Some(ClaimVerdict { claim, reason, deciding, vetoes })
    }

    /// The table of protocol §4, first match.
    fn decide_claim(
        &self,
        at: Circumstances,
        blame: &Blame,
    ) -> (Claim, ClaimReason, Option<SlotId>) {
        if at.shield {
            return (Claim::UnclaimedShield, ClaimReason::Operator, None);
        }
        if at.untied_calls && !blame.failed {
            return (Claim::Claimed, ClaimReason::ContextLost, None);
        }
        let Some(first) = blame.first else {
            return (Claim::Claimed, ClaimReason::Own, None);
        };
        let Some(met) = blame.met else {
            let claim = if blame.unanswered { Claim::ClaimedSilent } else { Claim::Claimed };
            return (claim, ClaimReason::Handoff, Some(first.slot));
        };
        let met_only_silence = blame.attempted && !blame.replied;
        if at.silent_claims && !self.marked && met_only_silence {
            return (Claim::ClaimedSilent, ClaimReason::Silent, Some(met.slot));
        }
        (Claim::Unclaimed, met.ending.reason(), Some(met.slot))
    }

    /// What the failed calls come to, taken together.
    fn blame(&self) -> Blame {
        let has_blamed_failure = LazyCell::new(|| self.has_blamed_failure());
        let mut blame = Blame::default();
        self.slots.for_each(|id, slot| {
            blame.probed |= slot.tries.probed;
            let Some(ending) = ending(slot, || *has_blamed_failure) else { return };
            blame.failed = true;
            if slot.class.is_blamed() {
                blame.add(Culprit { slot: id, order: slot.order, ending }, &slot.tries);
            }
        });
        blame
    }

    fn has_blamed_failure(&self) -> bool {
        self.slots.any(|slot| is_final_failure(slot) && slot.class.is_blamed())
    }

    fn end(&mut self, slot: SlotId, state: SlotState) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.state = state;
        }
    }

    /// What the finished request teaches: `each` is called once for every edge with an outcome.
    /// Returns whether the request was clean: it blames no outbound call.
    ///
    /// What is known to be survived explains no error. If it counted here, an optional callee that
    /// always fails would hide all other callees, and how the caller does by itself.
    ///
    /// A request that was cancelled teaches nothing; the host does not ask. Calls without an
    /// outcome and calls with a probe are left out.
    pub fn evidence(&self, caller_failed: bool, mut each: impl FnMut(EdgeId, EdgeOutcome)) -> bool {
        let has_blamed_failure = LazyCell::new(|| self.has_blamed_failure());
        // A call given up by a handler that answers ok was not needed, and says nothing.
        let fails = |slot: &Slot| {
            is_final_failure(slot)
                || caller_failed && ending(slot, || *has_blamed_failure).is_some()
        };
        let is_to_blame = |slot: &Slot| fails(slot) && slot.class.is_blamed();
        let mut clean = true;
        self.slots.for_each(|id, slot| {
            clean &= !is_to_blame(slot);
            if !has_outcome(slot) || !self.speaks_for_its_edge(id, slot) {
                return;
            }
            let failed = self
                .slots
                .any(|call| call.edge == slot.edge && has_outcome(call) && is_final_failure(call));
            let alone = || !self.slots.any(|call| call.edge != slot.edge && is_to_blame(call));
            each(
                slot.edge,
                match failed {
                    false => EdgeOutcome::Ok,
                    true if alone() => EdgeOutcome::FailedAlone,
                    true => EdgeOutcome::FailedJointly,
                },
            );
        });
        clean
    }

    /// Whether `id` is the first call of its edge with an outcome.
    fn speaks_for_its_edge(&self, id: SlotId, slot: &Slot) -> bool {
        self.slots.find(|call| call.edge == slot.edge && has_outcome(call)) == Some(id)
    }
}

/// What the failed calls of a request come to, taken together.
#[derive(Default)]
struct Blame {
    /// Whether any call failed, to blame or not.
    failed: bool,
    /// The first of the calls that are to blame, in the order in which they started.
    first: Option<Culprit>,
    /// The first of those whose retry criteria were met.
    met: Option<Culprit>,
    /// Whether one of them ended without an answer for its error.
    unanswered: bool,
    /// Whether one of them made an attempt.
    attempted: bool,
    /// Whether one of their attempts got a reply.
    replied: bool,
    /// Whether any call of the request was probed.
    probed: bool,
}

/// A failed call that is to blame.
#[derive(Clone, Copy)]
struct Culprit {
    slot: SlotId,
    order: u32,
    ending: Ending,
}

impl Blame {
    fn add(&mut self, culprit: Culprit, tries: &Tries) {
        let earlier = |than: Option<Culprit>| than.is_none_or(|than| culprit.order < than.order);
        if earlier(self.first) {
            self.first = Some(culprit);
        }
        if tries.criteria_met(culprit.ending) && earlier(self.met) {
            self.met = Some(culprit);
        }
        self.unanswered |= tries.read().is_some_and(CalleeClaim::is_unanswered);
        self.attempted |= tries.attempts > 0;
        self.replied |= tries.replied;
    }
}

/// How a call ended as far as an error answer is concerned: with its final failure, or in flight.
///
/// An observing caller's call that enforcing would have stopped has ended with that stop. A call
/// that the handler gave up without an outcome is in flight if it was retried, or if there
/// is no blamed failure for which it may have been given up. Otherwise it was cancelled.
fn ending(slot: &Slot, has_blamed_failure: impl FnOnce() -> bool) -> Option<Ending> {
    match slot.state {
        SlotState::Failed(ending) => Some(ending),
        SlotState::Open | SlotState::Abandoned => match slot.tries.shadow {
            Some(stop) => Some(Ending::Stopped(stop)),
            None => (slot.tries.attempts >= 2 || !has_blamed_failure()).then_some(Ending::InFlight),
        },
        SlotState::Ok | SlotState::Closed => None,
    }
}

fn is_final_failure(slot: &Slot) -> bool {
    matches!(slot.state, SlotState::Failed(_))
}

fn has_outcome(slot: &Slot) -> bool {
    let ended = match slot.state {
        SlotState::Ok | SlotState::Closed | SlotState::Failed(_) => !slot.tries.probed,
        SlotState::Open | SlotState::Abandoned => false,
    };
    ended || slot.ok_before
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call with these tries that was given up; the claim on the request's error.
    fn claim_on_dropped(tries: Tries) -> (Claim, ClaimReason) {
        let mut request = InboundCall::new(Arm::Observe, false);
        let slot = request.on_started(EdgeId(0), EdgeClass::Unknown).unwrap();
        request.on_attempt(slot, &tries);
        request.on_abandoned(slot);
        let verdict = request.claim(Circumstances::default()).unwrap();
        (verdict.claim, verdict.reason)
    }

    #[test]
    fn deciding_call_is_the_first_that_was_started() {
        // [claim-10]; the fifth call gets the slot of the first, which ended ok.
        for (fifth_fails, deciding) in [(false, 3), (true, 3)] {
            let mut request = InboundCall::new(Arm::Enforce, false);
            let mut start = |edge| request.on_started(EdgeId(edge), EdgeClass::Unknown).unwrap();
            let slots = [start(0), start(1), start(2), start(3)];
            request.on_ok(slots[0]);
            request.on_closed(slots[0]);
            request.on_failed(slots[3], Stop::NotConfigured);
            let fifth = request.on_started(EdgeId(0), EdgeClass::Unknown).unwrap();
            assert_eq!(fifth, slots[0], "slots of calls that ended ok are used again");
            if fifth_fails {
                request.on_failed(fifth, Stop::NotConfigured);
            } else {
                request.on_ok(fifth);
            }
            request.on_ok(slots[1]);
            request.on_ok(slots[2]);
            let verdict = request.claim(Circumstances::default()).unwrap();
            assert_eq!(verdict.deciding, Some(slots[deciding]), "fifth fails: {fifth_fails}");
        }
    }

    #[test]
    fn dropped_in_backoff_keeps_its_shadow_stop() {
        // [mode-6] [drop-5]
        let once = Tries {
            attempts: 1,
            sent: 1,
            last: Some(CalleeClaim::UNCLAIMED),
            replied: true,
            ..Tries::default()
        };
        let shadowed = Tries { shadow: Some(Stop::Suppressed), ..once };
        for (tries, claim, reason) in [
            (once, Claim::Claimed, ClaimReason::Handoff),
            (shadowed, Claim::Unclaimed, ClaimReason::Stopped(Stop::Suppressed)),
            (Tries { attempts: 2, ..once }, Claim::Unclaimed, ClaimReason::InFlight),
        ] {
            assert_eq!(claim_on_dropped(tries), (claim, reason), "{tries:?}");
        }
    }
}
