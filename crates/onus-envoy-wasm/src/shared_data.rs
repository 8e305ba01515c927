//! The bytes that Envoy shares between workers.

use std::cell::OnceCell;

use onus_envoy::Shared;

use crate::abi;

/// The shared data of this plugin's `vm_id`.
pub(crate) struct SharedData;

/// The key of the number that is taken next.
const NUMBERS: &str = "onus.numbers";

/// The name of the counter of calls that could be tied to no request: workers share counters too.
const UNTIED: &str = "onus_untied";

/// How often workers may meet at one key before one gives up.
const MEETINGS_MAX: u32 = 1_000;

impl Shared for SharedData {
    fn show(&self, key: &str, show: &mut dyn FnMut(&[u8], u32)) {
        abi::shared(key, show);
    }

    fn set(&self, key: &str, value: &[u8], version: u32) -> bool {
        abi::set_shared(key, value, version)
    }

    fn note_untied(&self) {
        if let Some(counter) = untied() {
            abi::increment(counter, 1);
        }
    }

    fn untied(&self) -> u64 {
        untied().map_or(0, abi::count)
    }

    fn next_number(&self) -> u16 {
        take_number().unwrap_or_else(|| fastrand::u16(..))
    }
}

/// The number of that counter.
fn untied() -> Option<u32> {
    thread_local! {
        static COUNTER: OnceCell<Option<u32>> = const { OnceCell::new() };
    }
    COUNTER.with(|counter| *counter.get_or_init(|| abi::counter(UNTIED)))
}

/// The first number may be taken. Envoy configures a plugin in its main thread before any worker has
/// it, so nobody can take one meanwhile.
pub(crate) fn open() {
    if SharedData.get(NUMBERS).is_none() {
        SharedData.set(NUMBERS, &0_u16.to_le_bytes(), 0);
    }
}

/// The next free number. Each worker takes one for each configuration; they start anew after 65,535.
fn take_number() -> Option<u16> {
    for _ in 0..MEETINGS_MAX {
        let (taken, version) = SharedData.get(NUMBERS)?;
        let taken = u16::from_le_bytes(taken.try_into().ok()?);
        if SharedData.set(NUMBERS, &taken.wrapping_add(1).to_le_bytes(), version) {
            return Some(taken);
        }
    }
    None
}
