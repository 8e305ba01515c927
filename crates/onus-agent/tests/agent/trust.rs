//! What passes a trust boundary.

use std::time::Duration;

use onus_agent::{CallError, Mode, Verdict};

use crate::host::{Reply, Service, Target, headers, line, retries};

/// A service that may try `s` twice, which is outside of the boundary.
fn service() -> Service {
    Service::enforcing(|config| {
        config.retry("s", retries(2));
        config.untrusted("s");
    })
}

#[test]
fn an_untrusted_callee_is_told_nothing() {
    // [trust-2]
    let service = service();
    let copied = [
        ("onus-mark", "1"),
        ("onus-attempt", "2"),
        ("onus-later", "x"),
        ("x-envoy-ratelimited", "true"),
        ("x-other", "kept"),
    ];
    let target = Target { carries: &copied, ..Target::GET };
    let kept = headers(&[("x-other", "kept")]);
    let marked = service.request_with(&[("onus-mark", "1")]);
    assert_eq!(marked.call_to("s", &target).send(), kept, "for a marked request");
    let request = service.request();
    let mut call = request.call_to("s", &target);
    assert_eq!(call.send(), kept, "the first attempt");
    call.reply(Reply::Silence);
    assert_eq!(call.send(), kept, "a retry after silence");
}

#[test]
fn an_untrusted_callees_claim_is_not_read() {
    // [trust-2]
    for claim in ["unclaimed", "claimed", "unclaimed;kind=shield", "nonsense"] {
        let service = service();
        let request = service.request();
        let mut call = request.call("s");
        let lines = [("onus-claim", claim), ("x-envoy-ratelimited", "true")];
        for attempt in 1..=2 {
            call.send();
            let verdict = call.fail(CallError::Http(503), Some(&lines));
            let retried = matches!(verdict, Verdict::Retry(_));
            assert_eq!(retried, attempt == 1, "{claim}: {verdict:?}");
        }
        let mut reply = headers(&[lines[0], lines[1], ("onus-later", "x"), ("x-other", "kept")]);
        call.outbound.hide_from_application(&mut reply);
        assert_eq!(reply, headers(&[("x-other", "kept")]), "{claim}");
        drop(call);
        let page = service.metrics();
        assert_eq!(
            page.sum("onus_retries_total", &[("cause", "missing"), ("verdict", "made")]),
            1.0
        );
        // A stranger cannot run up the counter of broken claims.
        assert_eq!(page.sum("onus_invalid_claims_total", &[]), 0.0, "{claim}");
        let own = "unclaimed;reason=exhausted;attempt=1;origin=\"s\";hops=1";
        assert_eq!(request.claim(), own, "{claim}");
    }
}

#[test]
fn an_untrusted_callee_may_end_the_loop_and_owns_nothing() {
    // [decide-3] [trust-2]
    let service = service();
    let request = service.request();
    let mut call = request.call("s");
    call.send();
    let lines = [("grpc-retry-pushback-ms", "-1"), ("onus-claim", "unclaimed;origin=\"z\";hops=3")];
    call.fail(CallError::Http(503), Some(&lines));
    let mut reply = headers(&lines);
    call.outbound.hide_from_application(&mut reply);
    assert_eq!(reply, headers(&[]));
    drop(call);
    let handoff = "claimed;kind=silent;reason=handoff;attempt=1;origin=\"s\";hops=1";
    assert_eq!(request.claim(), handoff);
}

#[test]
fn an_untrusted_caller_is_not_believed() {
    // [trust-1]
    let service = Service::enforcing(|config| {
        config.untrusted_callers = true;
        config.retry("b", retries(2));
    });
    let request = service.request_with(&[
        ("onus-mark", "1"),
        ("onus-attempt", "7"),
        ("onus-later", "x"),
        ("x-envoy-ratelimited", "true"),
        ("grpc-retry-pushback-ms", "-1"),
        ("x-other", "kept"),
    ]);
    assert_eq!(request.headers, headers(&[("x-other", "kept")]));
    service.request_with(&[("x-other", "kept")]);
    assert_eq!(service.metrics().sum("onus_forged_requests_total", &[]), 1.0, "it is counted");
    let mut call = request.call("b");
    assert_eq!(line(&call.send(), "onus-mark"), "");
    // The mark would have stopped this retry.
    let verdict = call.reply(Reply::Silence);
    assert!(matches!(verdict, Some(Verdict::Retry(_))), "{verdict:?}");
}

#[test]
fn an_untrusted_caller_is_told_nothing() {
    // [trust-1] [mode-2]
    let copied = [
        ("onus-claim", "unclaimed"),
        ("onus-later", "x"),
        ("x-envoy-ratelimited", "true"),
        ("x-other", "kept"),
    ];
    for (mode, shield, left) in [
        (Mode::ENFORCE, false, &copied[3..]),
        (Mode::ENFORCE, true, &copied[3..]),
        (Mode::Observe, false, &copied[3..]),
        (Mode::Off, true, &copied[3..]),
        (Mode::Off, false, &copied[..]),
    ] {
        let service = Service::new(mode, |config| config.untrusted_callers = true);
        if shield {
            service.shield(Duration::from_secs(60));
        }
        let request = service.request();
        request.call("b").play(&[Reply::Error("unclaimed")]);
        assert_eq!(request.answer(true, &copied), headers(left), "{mode:?} {shield}");
        let claims = service.metrics().sum("onus_claims_total", &[]);
        assert_eq!(claims, 0.0, "none was sent");
        if !shield {
            let answer = service.request().answer(false, &copied);
            assert_eq!(answer, headers(left), "{mode:?}");
        }
    }
}
