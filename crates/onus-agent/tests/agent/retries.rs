//! Retries made and not made, each with its reason.

use std::time::Duration;

use onus_agent::{CallError, ErrorSet, Stop, Verdict};

use crate::exposition::Exposition;
use crate::host::{Reply, Service, retries, stopped};

fn made(page: &Exposition, cause: &str) -> f64 {
    page.sum("onus_retries_total", &[("verdict", "made"), ("cause", cause)])
}

fn succeeded(page: &Exposition) -> f64 {
    page.sum("onus_retries_total", &[("verdict", "succeeded")])
}

#[test]
fn a_retry_is_made_when_it_is_sent() {
    // [decide-18]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request();
    let mut call = request.call("b");
    call.send();
    assert!(matches!(call.reply(Reply::Error("claimed")), Some(Verdict::Retry(_))));
    assert_eq!(made(&service.metrics(), "claimed"), 0.0, "it waits");
    call.send();
    assert_eq!(made(&service.metrics(), "claimed"), 1.0);
    drop(call);

    // Given up in backoff.
    let verdict = service.request().call("b").play(&[Reply::Error("claimed;kind=silent")]);
    assert!(matches!(verdict, Some(Verdict::Retry(_))), "{verdict:?}");
    assert_eq!(made(&service.metrics(), "claimed-silent"), 0.0);

    // Decided, and then the body could not be sent again.
    let request = service.request();
    let mut call = request.call("b");
    call.send();
    call.reply(Reply::Silence);
    call.outbound.refused(Stop::NotReplayable);
    drop(call);
    let page = service.metrics();
    assert_eq!(made(&page, "silent"), 0.0);
    let refused = page.sum("onus_retries_not_made_total", &[("reason", "not-replayable")]);
    assert_eq!(refused, 1.0);
    assert_eq!(page.sum("onus_calls_total", &[("outcome", "error")]), 1.0);
}

#[test]
fn a_retry_has_succeeded_when_its_answer_is_whole() {
    // [term-2] [term-3]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    for (breaks, successes, errors) in [(false, 1.0, 0.0), (true, 1.0, 1.0)] {
        let request = service.request();
        let mut call = request.call("b");
        call.send();
        call.reply(Reply::Error("claimed"));
        call.send();
        call.outbound.ok(false, || service.now());
        if breaks {
            let verdict = call.fail_by(CallError::Reset, None, false);
            assert_eq!(Some(verdict), stopped(Stop::NotReplayable));
        }
        drop(call);
        let page = service.metrics();
        assert_eq!(succeeded(&page), successes, "breaks: {breaks}");
        assert_eq!(page.sum("onus_calls_total", &[("outcome", "error")]), errors);
        assert_eq!(page.sum("onus_calls_total", &[("outcome", "ok")]), 1.0);
        let reason =
            if breaks { "unclaimed;reason=not-replayable;" } else { "claimed;reason=own;" };
        assert!(request.claim().starts_with(reason), "breaks: {breaks}");
    }
}

#[test]
fn the_callees_wish_to_wait_is_read() {
    // [decide-2] [decide-4] [decide-14] [decide-20]
    let seconds = Duration::from_secs;
    let waits = |time| Ok(time);
    let pushback = Err(Stop::Pushback);
    for (deadline, lines, expected) in [
        (None, &[][..], waits(Duration::from_nanos(1))),
        (None, &[("retry-after", "2")], waits(seconds(2))),
        (None, &[("retry-after", "Thu, 01 Jan 1970 00:00:03 GMT")], waits(seconds(3))),
        (None, &[("retry-after", "soon")], waits(Duration::from_nanos(1))),
        (None, &[("retry-after", "11")], pushback),
        (Some(seconds(3)), &[("retry-after", "2")], waits(seconds(2))),
        (Some(seconds(1)), &[("retry-after", "2")], pushback),
        (None, &[("grpc-retry-pushback-ms", "300")], waits(Duration::from_millis(300))),
        (None, &[("grpc-retry-pushback-ms", "-1")], pushback),
        (None, &[("grpc-retry-pushback-ms", "later")], pushback),
        (
            None,
            &[("grpc-retry-pushback-ms", "-1"), ("onus-claim", "unclaimed")],
            Err(Stop::Suppressed),
        ),
    ] {
        let service = Service::enforcing(|config| {
            let policy = retries(2);
            let limited = deadline.map(|deadline| policy.clone().deadline(deadline));
            config.retry("b", limited.unwrap_or(policy));
        });
        let request = service.request();
        let mut call = request.call("b");
        call.send();
        let decided = match call.fail(CallError::Http(503), Some(lines)) {
            Verdict::Retry(retry) => Ok(retry.after),
            Verdict::Stop(stop) => Err(stop),
        };
        assert_eq!(decided, expected, "{deadline:?} {lines:?}");
    }
}

#[test]
fn attempts_by_layers_below_are_counted() {
    // [attempt-3] [attempt-4] [criteria-1] [decide-8]
    let handoff = "claimed;reason=handoff;attempt=1;origin=\"b\";hops=1";
    let made = "unclaimed;reason=not-configured;attempt=1;origin=\"b\";hops=1";
    for (declared, claim, expected) in [
        (false, "claimed", handoff),
        (false, "claimed;attempt=1", handoff),
        (false, "claimed;attempt=2", made),
        (true, "claimed", made),
        (true, "claimed;attempt=1", handoff),
    ] {
        let service = Service::enforcing(|config| {
            if declared {
                config.declared_retries("b", 3, ErrorSet::failures());
            }
        });
        let request = service.request();
        request.call("b").play(&[Reply::Error(claim)]);
        assert_eq!(request.claim(), expected, "declared: {declared}, {claim}");
    }
    // They use up the policy's attempts, unless it is stacked on them.
    for (stacked, stop) in [(false, true), (true, false)] {
        let service = Service::enforcing(|config| {
            if stacked {
                config.declared_retries("b", 3, ErrorSet::failures());
                config.retry("b", retries(2).stacked());
            } else {
                config.retry("b", retries(2));
            }
        });
        let request = service.request();
        let verdict = request.call("b").play(&[Reply::Error("claimed;attempt=3")]);
        assert_eq!(verdict == stopped(Stop::Exhausted), stop, "stacked: {stacked}");
    }
}
