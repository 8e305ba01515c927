//! Time and chance of the process.

use std::time::SystemTime;

use onus_envoy::{Clock, Timestamp};

use crate::clock;

/// The clock of the process, and its randomness.
pub(crate) struct Chance;

impl Clock for Chance {
    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn wall(&self) -> SystemTime {
        clock::wall()
    }

    fn bits(&self) -> u64 {
        fastrand::u64(..)
    }
}
