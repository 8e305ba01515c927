//! ByteDance's chain stop and retry breaker. Source: CloudWeGo Kitex, "Retry" (service
//! governance): `ChainStop`, a request that descends from a retry is not retried, and
//! `EERThreshold`, no retries while more than 10 % of the requests of a method fail.

use onus_core::Timestamp;

use super::window::Window;
use super::{FailedAttempt, Rival};

/// No retries below a retry, and none while a tenth of the attempts fails.
pub(crate) struct Bytedance {
    attempts: u32,
    ended: Window,
    failed: Window,
}

const THRESHOLD_PERCENT: u64 = 10;
const SAMPLE_MIN: u64 = 10;

impl Bytedance {
    pub(super) fn new(attempts: u32) -> Self {
        Self { attempts, ended: Window::default(), failed: Window::default() }
    }
}

impl Rival for Bytedance {
    fn attempt_succeeded(&mut self, now: Timestamp) {
        self.ended.add(now);
    }

    fn may_retry(&mut self, failed: &FailedAttempt, now: Timestamp) -> bool {
        self.ended.add(now);
        self.failed.add(now);
        let ended = self.ended.sum(now);
        let open = ended >= SAMPLE_MIN && self.failed.sum(now) * 100 > ended * THRESHOLD_PERCENT;
        !failed.serves_retry && !open && failed.made < self.attempts
    }
}
