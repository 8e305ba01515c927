//! The bytes that Envoy shares between workers.

use onus_envoy::Shared;

use crate::abi;

/// The shared data of this plugin's `vm_id`.
pub(crate) struct SharedData;

/// The key of the number that is taken next.
const NUMBERS: &str = "onus.numbers";

/// How often workers may meet at one key before one gives up.
const MEETINGS_MAX: u32 = 1_000;

impl Shared for SharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        abi::shared(key)
    }

    fn set(&self, key: &str, value: &[u8], version: u32) -> bool {
        abi::set_shared(key, value, version)
    }

    fn next_number(&self) -> u16 {
        take_number().unwrap_or_else(|| fastrand::u16(..))
    }
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
