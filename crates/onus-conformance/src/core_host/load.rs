//! Many calls of one kind on an edge.

use onus_core::{
    CallError, Claim, Draw, Failure, Lot, MethodKind, Mode, OutboundCall, Pushback, RetryCause,
    Terms, Timestamp, Verdict,
};

use super::service::HeldEdge;
use crate::host::{Fact, Observation};
use crate::step::{Ends, Load};

/// Makes the calls, and tells how many ended as asked.
pub(super) fn run(load: &Load, mode: Mode, edge: &mut HeldEdge, now: Timestamp) -> Observation {
    let as_asked = (0..load.calls).filter(|_| call(load.ends, mode, edge, now)).count();
    [Fact::Loaded(u32::try_from(as_asked).unwrap_or(u32::MAX))].into()
}

/// One call in a request of its own; whether it ended as asked.
fn call(ends: Ends, mode: Mode, edge: &mut HeldEdge, now: Timestamp) -> bool {
    let HeldEdge { policy, state, .. } = edge;
    let arm = mode.arm(Lot::of_random(0), state.brake.halvings());
    let method = MethodKind::Grpc;
    let mut outbound = OutboundCall::new(Terms { arm, marked: false, method, deadline: None });
    if let Some(budget) = &mut state.budget {
        budget.on_calls(1, now);
    }
    let (claim, cause, succeeds) = match ends {
        Ends::Ok => (None, None, true),
        Ends::RetriedOk => (None, Some(RETRY), true),
        Ends::RetriedFailed => (None, Some(RETRY), false),
        Ends::ProbedOk => (Some(Claim::Unclaimed), Some(RetryCause::Probe), true),
        Ends::ProbedFailed => (Some(Claim::Unclaimed), Some(RetryCause::Probe), false),
    };
    let failure = Failure {
        error: CallError::Http(503),
        claim,
        attempt: None,
        pushback: Pushback::None,
        replayable: true,
        body_broke: false,
    };
    outbound.on_sent();
    if let Some(cause) = cause {
        let verdict = outbound.on_failure(&failure, policy, state, now, LETS_PASS);
        let Verdict::Retry(retry) = verdict else { return false };
        if retry.cause != cause {
            return false;
        }
        outbound.on_sent();
    }
    if succeeds {
        outbound.on_success(policy, state, now);
        if let Some(budget) = &mut state.budget {
            budget.on_successes(1, now);
        }
        return true;
    }
    matches!(outbound.on_failure(&failure, policy, state, now, LETS_PASS), Verdict::Stop(_))
}

const RETRY: RetryCause = RetryCause::Claim(onus_core::CalleeClaim::Missing);

/// A draw that passes every gate and takes every probe.
const LETS_PASS: Draw = Draw::from_bits(0);
