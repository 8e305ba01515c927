//! Retries made and not made, each with its reason.

use onus_agent::{CallError, Stop, Verdict};

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
