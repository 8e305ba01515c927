//! The bytes that Envoy shares between workers.

use std::sync::OnceLock;

use onus_envoy::Shared;

use crate::abi;

/// The shared data of this plugin's `vm_id`.
pub(crate) struct SharedData;

/// The key of the number that the next worker gets.
const WORKERS: &str = "onus.workers";

/// How often workers may meet at one key before one gives up.
const MEETINGS_MAX: u32 = 1_000;

impl Shared for SharedData {
    fn get(&self, key: &str) -> Option<(Vec<u8>, u32)> {
        abi::shared(key)
    }

    fn set(&self, key: &str, value: &[u8], version: u32) -> bool {
        abi::set_shared(key, value, version)
    }

    fn worker(&self) -> u16 {
        static WORKER: OnceLock<u16> = OnceLock::new();
        *WORKER.get_or_init(|| next_worker().unwrap_or_else(|| fastrand::u16(..)))
    }
}

/// The next free number. A plugin that is loaded again takes new ones; they start anew after 65,535.
fn next_worker() -> Option<u16> {
    for _ in 0..MEETINGS_MAX {
        let (taken, version) = SharedData.get(WORKERS).unwrap_or_default();
        let taken = taken.try_into().map_or(0, u16::from_le_bytes);
        if SharedData.set(WORKERS, &taken.wrapping_add(1).to_le_bytes(), version) {
            return Some(taken);
        }
    }
    None
}
