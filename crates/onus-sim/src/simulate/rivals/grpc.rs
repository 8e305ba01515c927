//! gRPC's retry throttling. Source: gRFC A6, "gRPC Retry Design", section "Throttling Retry
//! Attempts and Hedged RPCs", with the figures of its example.

use onus_core::Timestamp;

use super::{FailedAttempt, Rival};

/// Each failure takes a token, each success gives back a tenth; retries need more than half.
pub(crate) struct GrpcThrottling {
    attempts: u32,
    /// In thousandths, as the specification counts.
    tokens: u32,
}

const TOKENS_MAX: u32 = 10_000;
const PER_FAILURE: u32 = 1_000;
const PER_SUCCESS: u32 = 100;

impl GrpcThrottling {
    pub(super) const fn new(attempts: u32) -> Self {
        Self { attempts, tokens: TOKENS_MAX }
    }
}

impl Rival for GrpcThrottling {
    fn attempt_succeeded(&mut self, _now: Timestamp) {
        self.tokens = (self.tokens + PER_SUCCESS).min(TOKENS_MAX);
    }

    fn may_retry(&mut self, failed: &FailedAttempt, _now: Timestamp) -> bool {
        self.tokens = self.tokens.saturating_sub(PER_FAILURE);
        !failed.pushback && failed.made < self.attempts && self.tokens > TOKENS_MAX / 2
    }
}
