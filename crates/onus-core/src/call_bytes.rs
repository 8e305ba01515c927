//! What a request knows of one of its calls, as bytes: for hosts whose workers share nothing else.
//!
//! In a Wasm filter each worker of Envoy has a memory of its own, and a call may be made by another
//! worker than the one that serves the request. The call's state then travels as these bytes, and
//! the request takes it over before it answers.

use crate::claim::CalleeClaim;
use crate::criteria::Ending;
use crate::decision::Stop;
use crate::edge::{EdgeClass, EdgeId};
use crate::inbound::InboundCall;
use crate::outbound::Tries;
use crate::slots::{Slot, SlotId, SlotState};

/// The length of a call's bytes.
pub const CALL_BYTES: usize = 15;

/// The version of the form.
const VERSION: u8 = 1;

impl InboundCall {
    /// A call as bytes; `None` for one that is not known.
    #[must_use]
    pub fn call_bytes(&self, id: SlotId) -> Option<[u8; CALL_BYTES]> {
        let slot = self.slots().get(id)?;
        let Tries { attempts, sent, in_attempt, last, replied, probed, shadow } = slot.tries;
        let flags = [in_attempt, replied, probed, slot.ok_before];
        let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
        let (state, ending) = state_to_bytes(slot.state);
        let mut bytes = [0; CALL_BYTES];
        bytes[0] = VERSION;
        bytes[1] = class_to_byte(slot.class);
        bytes[2..6].copy_from_slice(&attempts.to_le_bytes());
        bytes[6..10].copy_from_slice(&sent.to_le_bytes());
        bytes[10] = flags;
        bytes[11] = place(&CalleeClaim::ALL, last.as_ref());
        bytes[12] = place(&Stop::ALL, shadow.as_ref());
        bytes[13] = state;
        bytes[14] = ending;
        Some(bytes)
    }

    /// Takes a call over that another worker has made for this request, as the next in the order of
    /// starts. `None` where the bytes are none of a call, or the request has too many.
    pub fn adopt(&mut self, edge: EdgeId, bytes: &[u8]) -> Option<SlotId> {
        let slot = read(edge, bytes)?;
        self.slots_mut().append(slot)
    }
}

fn read(edge: EdgeId, bytes: &[u8]) -> Option<Slot> {
    let bytes: &[u8; CALL_BYTES] = bytes.try_into().ok()?;
    if bytes[0] != VERSION || bytes[10] > 0b1111 {
        return None;
    }
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let flag = |at: u8| bytes[10] >> at & 1 == 1;
    Some(Slot {
        edge,
        class: class_from_byte(bytes[1])?,
        tries: Tries {
            attempts: number(2)?,
            sent: number(6)?,
            in_attempt: flag(0),
            replied: flag(1),
            probed: flag(2),
            last: at(&CalleeClaim::ALL, bytes[11])?,
            shadow: at(&Stop::ALL, bytes[12])?,
        },
        state: state_from_bytes(bytes[13], bytes[14])?,
        ok_before: flag(3),
        order: 0,
    })
}

/// The place of a value in the list of all, counted from 1; 0 for none.
fn place<T: PartialEq>(all: &[T], value: Option<&T>) -> u8 {
    let place = value.and_then(|value| all.iter().position(|known| known == value));
    place.map_or(0, |place| place as u8 + 1)
}

/// The value of a place; `None` for one that is not in the list.
fn at<T: Copy>(all: &[T], place: u8) -> Option<Option<T>> {
    match place.checked_sub(1) {
        None => Some(None),
        Some(place) => all.get(usize::from(place)).map(|value| Some(*value)),
    }
}

const fn class_to_byte(class: EdgeClass) -> u8 {
    match class {
        EdgeClass::Unknown => 0,
        EdgeClass::FailClose => 1,
        EdgeClass::FailOpen => 2,
    }
}

const fn class_from_byte(byte: u8) -> Option<EdgeClass> {
    match byte {
        0 => Some(EdgeClass::Unknown),
        1 => Some(EdgeClass::FailClose),
        2 => Some(EdgeClass::FailOpen),
        _ => None,
    }
}

/// The state, and the ending of one that failed: 0 for in flight, else the place of its stop.
fn state_to_bytes(state: SlotState) -> (u8, u8) {
    match state {
        SlotState::Open => (0, 0),
        SlotState::Abandoned => (1, 0),
        SlotState::Ok => (2, 0),
        SlotState::Closed => (3, 0),
        SlotState::Failed(Ending::InFlight) => (4, 0),
        SlotState::Failed(Ending::Stopped(stop)) => (4, place(&Stop::ALL, Some(&stop))),
    }
}

fn state_from_bytes(state: u8, ending: u8) -> Option<SlotState> {
    match (state, ending) {
        (0, 0) => Some(SlotState::Open),
        (1, 0) => Some(SlotState::Abandoned),
        (2, 0) => Some(SlotState::Ok),
        (3, 0) => Some(SlotState::Closed),
        (4, ending) => {
            let ending = at(&Stop::ALL, ending)?.map_or(Ending::InFlight, Ending::Stopped);
            Some(SlotState::Failed(ending))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::inbound::Circumstances;
    use crate::mode::Arm;

    fn any_tries() -> impl Strategy<Value = Tries> {
        let last = prop::option::of(select(&CalleeClaim::ALL[..]));
        let shadow = prop::option::of(select(&Stop::ALL[..]));
        let flags = any::<(bool, bool, bool)>();
        (any::<u32>(), any::<u32>(), flags, last, shadow).prop_map(
            |(attempts, sent, (in_attempt, replied, probed), last, shadow)| Tries {
                attempts,
                sent,
                in_attempt,
                last,
                replied,
                probed,
                shadow,
            },
        )
    }

    fn any_slot() -> impl Strategy<Value = Slot> {
        let class = select(&[EdgeClass::Unknown, EdgeClass::FailClose, EdgeClass::FailOpen][..]);
        let ending =
            prop_oneof![Just(Ending::InFlight), select(&Stop::ALL[..]).prop_map(Ending::Stopped),];
        let state = prop_oneof![
            select(&[SlotState::Open, SlotState::Abandoned, SlotState::Ok, SlotState::Closed][..]),
            ending.prop_map(SlotState::Failed),
        ];
        (0..4_u32, class, any_tries(), state, any::<bool>()).prop_map(
            |(edge, class, tries, state, ok_before)| Slot {
                edge: EdgeId(edge),
                class,
                tries,
                state,
                ok_before,
                order: 0,
            },
        )
    }

    proptest! {
        #[test]
        fn a_request_that_adopts_its_calls_is_the_same_request(
            slots in prop::collection::vec(any_slot(), 0..12),
            marked in any::<bool>(),
            silent_claims in any::<bool>(),
        ) {
            let mut made = InboundCall::new(Arm::Enforce, marked);
            let ids: Vec<_> = slots.iter().map(|slot| made.slots_mut().append(*slot).unwrap()).collect();
            let mut adopting = InboundCall::new(Arm::Enforce, marked);
            for (slot, id) in slots.iter().zip(&ids) {
                let bytes = made.call_bytes(*id).unwrap();
                prop_assert_eq!(adopting.adopt(slot.edge, &bytes), Some(*id));
            }
            let at = Circumstances { silent_claims, ..Circumstances::default() };
            prop_assert_eq!(adopting.claim(at), made.claim(at));
            prop_assert_eq!(adopting, made);
        }

        #[test]
        fn no_bytes_panic_and_what_is_read_is_written_the_same(bytes in prop::collection::vec(0..16_u8, 0..20)) {
            let mut request = InboundCall::new(Arm::Enforce, false);
            if let Some(id) = request.adopt(EdgeId(0), &bytes) {
                prop_assert_eq!(&request.call_bytes(id).unwrap()[..], &bytes[..]);
            }
        }
    }

    #[test]
    fn other_bytes_are_no_call() {
        let mut request = InboundCall::new(Arm::Enforce, false);
        let id = request.on_started(EdgeId(0), EdgeClass::Unknown).unwrap();
        let bytes = request.call_bytes(id).unwrap();
        assert!(request.adopt(EdgeId(1), &bytes).is_some());
        for (at, value) in [(0, 2), (1, 3), (10, 16), (11, 7), (12, 10), (13, 5), (14, 1)] {
            let mut wrong = bytes;
            wrong[at] = value;
            assert_eq!(request.adopt(EdgeId(1), &wrong), None, "byte {at}");
        }
        assert_eq!(request.adopt(EdgeId(1), &bytes[1..]), None);
        assert_eq!(request.adopt(EdgeId(1), &[]), None);
    }
}
