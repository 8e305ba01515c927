use super::*;
use crate::claim::Claim;
use crate::criteria::Ending;
use crate::error::CallError;
use crate::policy::RetryPolicy;

#[test]
fn only_silence_after_a_broken_body_says_nothing_of_the_callee() {
    // [drop-6]
    for (error, body_broke, tells) in [
        (CallError::Reset, true, false),
        (CallError::Timeout, true, false),
        (CallError::Reset, false, true),
        (CallError::Http(503), true, true),
        (CallError::Grpc(14), true, true),
    ] {
        let failure = Failure {
            error,
            claim: None,
            attempt: None,
            pushback: Pushback::None,
            replayable: false,
            body_broke,
        };
        assert_eq!(failure.tells_of_callee(), tells, "{error} {body_broke}");
    }
}

#[test]
fn attempts_that_the_host_sees_below_count_with_those_that_a_reply_tells() {
    // [attempt-2]; sends, attempts seen of the last one, attempt in the reply.
    for (sends, seen, told, attempts) in [
        (1, None, None, 1),
        (1, Some(3), None, 3),
        (1, Some(3), Some(1), 3),
        (1, Some(2), Some(3), 3),
        (1, Some(0), None, 1),
        (2, Some(3), None, 4),
        (1, Some(u32::MAX), None, u32::MAX),
    ] {
        let policy = EdgePolicy::default();
        let mut edge = EdgeState::new(&policy);
        let mut call = OutboundCall::new(Terms {
            arm: Arm::Enforce,
            marked: false,
            method: MethodKind::Safe,
            deadline: None,
        });
        for _ in 0..sends {
            call.on_sent();
        }
        if let Some(seen) = seen {
            call.on_attempts_below(seen);
        }
        let failure = Failure {
            error: CallError::Http(503),
            claim: Some(Claim::Claimed),
            attempt: told,
            pushback: Pushback::None,
            replayable: false,
            body_broke: false,
        };
        let draw = Draw::from_bits(0);
        call.on_failure(&failure, &policy, &mut edge, Timestamp::ZERO, draw);
        call.on_attempts_below(9);
        assert_eq!(call.tries().attempts, attempts, "{sends} {seen:?} {told:?}");
    }
}

#[test]
fn callees_are_told_of_each_attempt_before_once() {
    // [attempt-12]; attempts of the run before and of this one, what the application says, what
    // callees are told.
    for (before, sends, told, previous) in [
        (0, 1, 0, 0),
        (0, 2, 0, 1),
        (0, 3, 0, 2),
        (0, 1, 2, 2),
        (0, 3, 2, 4),
        // The application's loop, which says nothing.
        (1, 1, 0, 1),
        (2, 2, 0, 3),
        // Its library's retry, whose number counts the calls before it, or attempts that were lost
        // on the way here.
        (1, 1, 1, 1),
        (2, 1, 1, 2),
        (2, 2, 1, 3),
        (1, 1, 3, 3),
        (0, 2, u32::MAX, u32::MAX),
    ] {
        let terms =
            Terms { arm: Arm::Enforce, marked: false, method: MethodKind::Grpc, deadline: None };
        let tries = Tries { attempts: before, sent: before, ..Tries::default() };
        let mut call = OutboundCall::repeated(terms, tries);
        for _ in 0..sends {
            call.on_sent();
        }
        assert_eq!(call.previous_attempts(told), previous, "{before} {sends} {told}");
    }
}

#[test]
fn a_retry_that_a_limit_below_refused_counts_as_refused() {
    // [criteria-1]
    let pushback = Pushback::Refused;
    for (policy, claim, pushback, stop) in [
        (None, Claim::Claimed, Pushback::None, Stop::BudgetDenied),
        (None, Claim::Unclaimed, Pushback::None, Stop::Suppressed),
        (None, Claim::Claimed, pushback, Stop::Pushback),
        (RetryPolicy::new(2), Claim::Claimed, Pushback::None, Stop::NotReplayable),
    ] {
        let policy = EdgePolicy { retry: policy, ..EdgePolicy::default() };
        let mut edge = EdgeState::new(&policy);
        let mut call = OutboundCall::new(Terms {
            arm: Arm::Enforce,
            marked: false,
            method: MethodKind::Safe,
            deadline: None,
        });
        call.on_sent();
        call.on_denied_below();
        let failure = Failure {
            error: CallError::Http(503),
            claim: Some(claim),
            attempt: None,
            pushback,
            replayable: false,
            body_broke: false,
        };
        let draw = Draw::from_bits(0);
        let verdict = call.on_failure(&failure, &policy, &mut edge, Timestamp::ZERO, draw);
        assert_eq!(verdict, Verdict::Stop(stop));
        assert!(call.tries().criteria_met(Ending::Stopped(stop)) || stop == Stop::NotReplayable);
    }
}

#[test]
fn an_answer_that_breaks_after_its_head_teaches_the_gate_once() {
    // [gate-1]
    let policy = EdgePolicy { retry: RetryPolicy::new(2), ..EdgePolicy::default() };
    let mut edge = EdgeState::new(&policy);
    let (now, draw) = (Timestamp::ZERO, Draw::from_bits(0));
    let fails = |error, replayable| Failure {
        error,
        claim: Some(Claim::Claimed),
        attempt: None,
        pushback: Pushback::None,
        replayable,
        body_broke: false,
    };
    let mut call = OutboundCall::new(Terms {
        arm: Arm::Enforce,
        marked: false,
        method: MethodKind::Safe,
        deadline: None,
    });
    edge.gate.record(false);
    call.on_sent();
    call.on_failure(&fails(CallError::Http(503), true), &policy, &mut edge, now, draw);
    call.on_sent();
    call.on_success(&policy, &mut edge, now);
    let taught = edge.gate;
    call.on_failure(&fails(CallError::Reset, false), &policy, &mut edge, now, draw);
    assert_eq!(edge.gate, taught);
}
