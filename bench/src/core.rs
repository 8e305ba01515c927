//! One decision of the core: a new call, its failure, the budget, the claim.

use std::hint::black_box;

use onus_core::{
    Arm, CallError, Circumstances, Claim, ClaimVerdict, Draw, EdgeClass, EdgeId, EdgePolicy,
    EdgeState, Failure, InboundCall, MethodKind, OutboundCall, Pushback, RetryPolicy, Terms,
    Timestamp, Verdict,
};

/// The edge that the decisions are about: two attempts, a budget of 10 %.
pub struct Edge {
    policy: EdgePolicy,
    state: EdgeState,
    now: u64,
}

impl Edge {
    /// An edge with nothing but calls behind it.
    #[must_use]
    pub fn new() -> Self {
        let policy = EdgePolicy { retry: RetryPolicy::articles(2), ..EdgePolicy::default() };
        Self { state: EdgeState::new(&policy), policy, now: 0 }
    }

    /// A request arrives, makes one call, the call fails and may or may not be retried, and the
    /// request's error gets its claim.
    pub fn decide(&mut self) -> Option<ClaimVerdict> {
        self.now += 1_000_000;
        let now = Timestamp::from_nanos(self.now);
        let mut inbound = InboundCall::new(Arm::Enforce, false);
        let slot = inbound.on_started(EdgeId(0), EdgeClass::Unknown)?;
        let mut call = OutboundCall::new(Terms {
            arm: Arm::Enforce,
            marked: false,
            method: MethodKind::Safe,
            deadline: None,
        });
        call.on_sent();
        if let Some(budget) = &mut self.state.budget {
            budget.on_calls(1, now);
        }
        let failure = black_box(Failure {
            error: CallError::Http(503),
            claim: Some(Claim::Claimed),
            attempt: Some(1),
            pushback: Pushback::None,
            replayable: true,
            body_broke: false,
        });
        let draw = Draw::from_bits(self.now);
        let verdict = call.on_failure(&failure, &self.policy, &mut self.state, now, draw);
        inbound.on_attempt(slot, call.tries());
        if let Verdict::Stop(stop) = verdict {
            inbound.on_failed(slot, stop);
        }
        inbound.claim(Circumstances::default())
    }
}

impl Default for Edge {
    fn default() -> Self {
        Self::new()
    }
}
