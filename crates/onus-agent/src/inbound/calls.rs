//! The calls that are made for a request.

use onus_core::{OutboundCall, SlotId, Stop, Tries};

use super::{Inbound, Origin, Progress, Stage};
use crate::edges::{Edge, lock};
use crate::symbols::Symbol;

/// The most failed calls of one request that are remembered for repeats and origins.
pub(super) const NOTES_MAX: usize = 256;

/// What is kept of a call without success: who is said to be at fault, and how to recognise a
/// repeat of it.
pub(super) struct CallNote {
    pub(super) slot: SlotId,
    pub(super) identity: CallIdentity,
    pub(super) origin: Option<Origin>,
}

/// What tells one call of a request from the others.
pub(crate) type CallIdentity = onus_core::CallIdentity<Symbol>;

impl Inbound {
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
            let ended = progress.notes.iter().map(|note| &note.identity);
            let (slot, tries) = match identity.repeated(progress.call.arm(), ended) {
                Some(at) => {
                    // The others stay in their order.
                    let slot = progress.notes.remove(at).slot;
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
