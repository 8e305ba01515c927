//! Linkerd's retry budget. Source: Linkerd's documentation of service profiles, "Retry budgets":
//! `retryRatio` 0.2, `minRetriesPerSecond` 10, `ttl` 10 s. A call has no limit of its own.

use onus_core::Timestamp;

use super::window::Window;
use super::{FailedAttempt, Rival};

/// Retries while the last ten seconds leave some of their percentage and of the floor.
pub(crate) struct Linkerd {
    percent: u32,
    floor: u32,
    calls: Window,
    retries: Window,
}

impl Linkerd {
    pub(super) fn new(percent: u32, floor: u32) -> Self {
        Self { percent, floor, calls: Window::default(), retries: Window::default() }
    }
}

const TTL_SECONDS: u64 = 10;

impl Rival for Linkerd {
    fn call_started(&mut self, now: Timestamp) {
        self.calls.add(now);
    }

    fn may_retry(&mut self, _failed: &FailedAttempt, now: Timestamp) -> bool {
        let of_calls = self.calls.sum(now) * u64::from(self.percent) / 100;
        let allowed = of_calls + u64::from(self.floor) * TTL_SECONDS;
        let retry = self.retries.sum(now) < allowed;
        if retry {
            self.retries.add(now);
        }
        retry
    }
}
