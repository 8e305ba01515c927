//! The outbound calls of one inbound request, stored without an allocation while they are few.

use alloc::vec::Vec;

use crate::criteria::Ending;
use crate::edge::{EdgeClass, EdgeId};
use crate::outbound::Tries;

/// An outbound call within its inbound request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId(u16);

/// What an inbound request knows of one of its outbound calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub(crate) edge: EdgeId,
    pub(crate) class: EdgeClass,
    pub(crate) tries: Tries,
    pub(crate) state: SlotState,
    /// Whether an earlier call that used this slot ended ok.
    pub(crate) ok_before: bool,
    /// The place of the call in the order of starts, which slots used again do not keep.
    pub(crate) order: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SlotState {
    /// No outcome yet.
    Open,
    /// No outcome, and the handler does not wait for one any more.
    Abandoned,
    /// Answered; a broken body may still turn it into a failure.
    Ok,
    /// Answered to the end: the slot may serve another call of the edge.
    Closed,
    /// Failed for good.
    Failed(Ending),
}

/// The most outbound calls that one request keeps apart; further ones count as context-lost.
pub(crate) const SLOTS_MAX: usize = 1024;

/// Calls that fit without an allocation; most requests make fewer.
const INLINE: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slots {
    first: [Option<Slot>; INLINE],
    more: Vec<Slot>,
    started: u32,
}

impl Slots {
    /// Stores a call and its place in the order; `None` where the request has too many.
    pub(crate) fn push(&mut self, slot: Slot) -> Option<SlotId> {
        if self.first.iter().all(Option::is_some) {
            let order = self.started.saturating_add(1);
            if let Some(id) = self.reuse(Slot { order, ..slot }) {
                self.started = order;
                return Some(id);
            }
        }
        self.append(slot)
    }

    /// Stores a call behind all others; `None` where the request has too many.
    pub(crate) fn append(&mut self, slot: Slot) -> Option<SlotId> {
        self.started = self.started.saturating_add(1);
        let slot = Slot { order: self.started, ..slot };
        if let Some(free) = self.first.iter().position(Option::is_none) {
            self.first[free] = Some(slot);
            return Some(SlotId(free as u16));
        }
        let index = INLINE + self.more.len();
        if index >= SLOTS_MAX {
            return None;
        }
        self.more.push(slot);
        Some(SlotId(index as u16))
    }

    /// Puts the call into the slot of an earlier call of the same edge that ended ok.
    fn reuse(&mut self, slot: Slot) -> Option<SlotId> {
        let id = self.find(|old| {
            old.state == SlotState::Closed && old.edge == slot.edge && !old.tries.probed
        })?;
        *self.get_mut(id)? = Slot { ok_before: true, ..slot };
        Some(id)
    }

    pub(crate) fn get(&self, id: SlotId) -> Option<&Slot> {
        let index = usize::from(id.0);
        match index.checked_sub(INLINE) {
            None => self.first[index].as_ref(),
            Some(index) => self.more.get(index),
        }
    }

    pub(crate) fn get_mut(&mut self, id: SlotId) -> Option<&mut Slot> {
        let index = usize::from(id.0);
        match index.checked_sub(INLINE) {
            None => self.first[index].as_mut(),
            Some(index) => self.more.get_mut(index),
        }
    }

    /// The first call of which `is` is true, in the order of slots.
    ///
    /// Two plain loops: on the few slots that most requests have, a chained iterator costs several
    /// times as much.
    pub(crate) fn find(&self, mut is: impl FnMut(&Slot) -> bool) -> Option<SlotId> {
        for (index, slot) in self.first.iter().enumerate() {
            match slot {
                Some(slot) if is(slot) => return Some(SlotId(index as u16)),
                Some(_) => {}
                None => return None,
            }
        }
        let index = self.more.iter().position(is)?;
        Some(SlotId((INLINE + index) as u16))
    }

    pub(crate) fn any(&self, is: impl FnMut(&Slot) -> bool) -> bool {
        self.find(is).is_some()
    }

    pub(crate) fn for_each(&self, mut each: impl FnMut(SlotId, &Slot)) {
        let mut next = 0;
        self.find(|slot| {
            each(SlotId(next), slot);
            next += 1;
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(edge: u32, state: SlotState) -> Slot {
        let tries = Tries::default();
        let class = EdgeClass::Unknown;
        Slot { edge: EdgeId(edge), class, tries, state, ok_before: false, order: 0 }
    }

    #[test]
    fn calls_beyond_the_most_are_not_kept() {
        let mut slots = Slots::default();
        for n in 0..SLOTS_MAX {
            let id = slots.push(slot(0, SlotState::Open));
            assert_eq!(id, Some(SlotId(n as u16)));
        }
        assert_eq!(slots.push(slot(0, SlotState::Open)), None);
        for n in 0..SLOTS_MAX as u16 {
            let order = slots.get(SlotId(n)).map(|slot| slot.order);
            assert_eq!(order, Some(u32::from(n) + 1), "calls are numbered as they start");
        }
        assert_eq!(slots.get(SlotId(SLOTS_MAX as u16)), None);
    }

    #[test]
    fn a_request_that_loops_over_one_edge_stays_small() {
        let mut slots = Slots::default();
        for n in 0..10_000_u32 {
            let id = slots.push(slot(0, SlotState::Open)).unwrap();
            slots.get_mut(id).unwrap().state = SlotState::Closed;
            assert_eq!(slots.get_mut(id).unwrap().ok_before, n >= 4, "call {n}");
        }
        assert_eq!(slots.get(SlotId(INLINE as u16)), None);
    }

    #[test]
    fn only_a_closed_call_of_the_same_edge_gives_its_slot() {
        for (edge, state, probed, reused) in [
            (0, SlotState::Closed, false, true),
            (1, SlotState::Closed, false, false),
            (0, SlotState::Closed, true, false),
            (0, SlotState::Ok, false, false),
            (0, SlotState::Open, false, false),
            (0, SlotState::Abandoned, false, false),
            (0, SlotState::Failed(Ending::InFlight), false, false),
        ] {
            let mut slots = Slots::default();
            for _ in 0..INLINE {
                let id = slots.push(slot(edge, state)).unwrap();
                slots.get_mut(id).unwrap().tries.probed = probed;
            }
            let id = slots.push(slot(0, SlotState::Open));
            let expected = if reused { 0 } else { INLINE as u16 };
            assert_eq!(id, Some(SlotId(expected)), "{edge} {state:?} probed: {probed}");
        }
    }
}
