//! The moments of calls and requests that no verdict shows.

use std::time::Duration;

use onus_core::{
    Arm, CalleeClaim, EdgeClass, EdgeId, EdgeOutcome, EdgePolicy, EdgeState, InboundCall,
    MethodKind, OutboundCall, RetryPolicy, Stop, Terms, Timestamp, Tries,
};

fn terms(method: MethodKind, deadline: Option<Timestamp>) -> Terms {
    Terms { arm: Arm::Enforce, marked: false, method, deadline }
}

#[test]
fn whether_a_failed_attempt_could_be_followed_by_another() {
    // [decide-5] [decide-16] [decide-17]
    let plain = RetryPolicy::new(2);
    let with_unsafe = plain.map(|mut policy| {
        policy.unsafe_methods = true;
        policy
    });
    for (retry, method, may_retry) in [
        (None, MethodKind::Safe, false),
        (plain, MethodKind::Safe, true),
        (plain, MethodKind::Grpc, true),
        (plain, MethodKind::Unsafe, false),
        (with_unsafe, MethodKind::Unsafe, true),
    ] {
        let policy = EdgePolicy { retry, ..EdgePolicy::default() };
        let call = OutboundCall::new(terms(method, None));
        assert_eq!(call.may_retry(&policy), may_retry, "{retry:?} {method:?}");
    }
}

#[test]
fn a_success_ends_the_attempt() {
    let policy = EdgePolicy::default();
    let mut edge = EdgeState::new(&policy);
    let mut call = OutboundCall::new(terms(MethodKind::Safe, None));
    assert_eq!(call.tries(), &Tries::default());
    call.on_sent();
    assert_eq!((call.tries().in_attempt, call.tries().read()), (true, Some(CalleeClaim::Silent)));
    assert!(!call.is_retry());
    call.on_success(&policy, &mut edge, Timestamp::ZERO);
    assert_eq!((call.tries().in_attempt, call.tries().read()), (false, None));
}

#[test]
fn time_for_an_attempt_is_the_shorter_limit_less_the_margin() {
    // [deadline-1] [deadline-2] [deadline-3]
    let ms = Duration::from_millis;
    let now = Timestamp::ZERO.saturating_add(ms(500));
    for (deadline, per_try, time, may_send) in [
        (None, None, None, true),
        (Some(1_000), None, Some(475), true),
        (None, Some(100), Some(95), true),
        (Some(1_000), Some(100), Some(95), true),
        (Some(600), Some(1_000), Some(95), true),
        (Some(501), None, Some(0), true),
        (Some(500), None, Some(0), false),
        (Some(400), None, Some(0), false),
    ] {
        let deadline = deadline.map(|at| Timestamp::ZERO.saturating_add(ms(at)));
        let call = OutboundCall::new(terms(MethodKind::Safe, deadline));
        let found = call.time_for_attempt(per_try.map(ms), now);
        assert_eq!(found, time.map(ms), "{deadline:?} {per_try:?}");
        let sent = call.may_send(|| now);
        assert_eq!(sent.is_ok(), may_send, "{deadline:?}");
        assert!(may_send || sent == Err(Stop::NoTime));
    }
}

#[test]
fn a_repeat_waits_like_a_first_call() {
    // [attempt-5] [mark-5]; the attempts go on, the backoff starts anew.
    let once = Tries {
        attempts: 1,
        sent: 1,
        last: Some(CalleeClaim::Missing),
        replied: true,
        ..Tries::default()
    };
    let mut call = OutboundCall::repeated(terms(MethodKind::Safe, None), once);
    assert!(call.mark());
    call.on_sent();
    assert!(!call.is_retry(), "the application's try is no retry of this host");
    assert_eq!((call.tries().attempts, call.tries().sent), (2, 2));
}

#[test]
fn a_given_up_attempt_has_ended_in_silence_when_it_is_repeated() {
    // [attempt-6] [mark-5] [drop-5]
    let claimed = Some(CalleeClaim::CLAIMED);
    let silent = Some(CalleeClaim::Silent);
    for (in_attempt, last, read) in [
        (true, None, silent),
        (true, claimed, silent),
        (false, claimed, claimed),
        (false, None, None),
    ] {
        let mut request = InboundCall::new(Arm::Enforce, false);
        let slot = request.on_started(EdgeId(0), EdgeClass::Unknown).expect("one call fits");
        let tries = Tries { attempts: 1, sent: 1, in_attempt, last, ..Tries::default() };
        request.on_attempt(slot, &tries);
        request.on_abandoned(slot);
        let repeated = request.on_repeated(slot);
        assert_eq!(repeated, Tries { in_attempt: false, last: read, ..tries });
    }
}

#[test]
fn each_edge_with_an_outcome_is_told_once() {
    // [class-1] [class-2]
    let mut request = InboundCall::new(Arm::Enforce, false);
    let mut start = |edge| request.on_started(EdgeId(edge), EdgeClass::Unknown).expect("they fit");
    let [first, second, third, open] = [start(7), start(7), start(7), start(8)];
    let sixth = start(9);
    request.on_ok(first);
    request.on_failed(second, Stop::NotConfigured);
    request.on_failed(third, Stop::NotConfigured);
    request.on_abandoned(open);
    request.on_ok(sixth);
    let mut told = Vec::new();
    let clean = request.evidence(true, |edge, outcome| told.push((edge, outcome)));
    assert_eq!(told, [(EdgeId(7), EdgeOutcome::FailedAlone), (EdgeId(9), EdgeOutcome::Ok)]);
    assert!(!clean);
}
