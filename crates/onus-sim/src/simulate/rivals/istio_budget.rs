//! A budget of 20 % of the requests of the last ten seconds. Source: Kubernetes Gateway API,
//! GEP-3388 "Retry Budgets" (percent 20, interval 10 s), which Istio's `retryBudget` with
//! `budgetInterval` follows; its `minRetryConcurrency` of 3 is taken as three retries in the
//! interval, since the model does not follow which of them are still under way.

use onus_core::Timestamp;

use super::window::Window;
use super::{FailedAttempt, Rival};

/// Retries up to a percentage of the requests of the last ten seconds.
pub(crate) struct IstioBudget {
    attempts: u32,
    percent: u32,
    requests: Window,
    retries: Window,
}

const AT_LEAST: u64 = 3;

impl IstioBudget {
    pub(super) fn new(attempts: u32, percent: u32) -> Self {
        Self { attempts, percent, requests: Window::default(), retries: Window::default() }
    }
}

impl Rival for IstioBudget {
    fn call_started(&mut self, now: Timestamp) {
        self.requests.add(now);
    }

    fn may_retry(&mut self, failed: &FailedAttempt, now: Timestamp) -> bool {
        let allowed = self.requests.sum(now) * u64::from(self.percent) / 100;
        let retry = failed.made < self.attempts && self.retries.sum(now) < allowed.max(AT_LEAST);
        if retry {
            self.retries.add(now);
        }
        retry
    }
}
