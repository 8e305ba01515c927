//! Calls that the handler gave up, or that are still open, when it answers with an error.

use std::time::Duration;

use onus_agent::{EdgeClass, Stop};

use crate::host::{Call, Reply, Service, headers, line, retries};

const CLAIMED: Reply = Reply::Error("claimed");

/// The claim of a request after these calls, in their order of start. What is called in `open`
/// hangs, and is given up before the answer only if `given_up`.
fn claim_after(calls: &[(&str, &[Reply])], given_up: bool) -> String {
    let service = Service::enforcing(|config| {
        config.retry("b", retries(2));
        config.retry("d", retries(3));
        config.override_class("open", EdgeClass::FailOpen);
    });
    let request = service.request();
    let mut held: Vec<Call<'_>> = Vec::new();
    for (callee, replies) in calls {
        let mut call = request.call(callee);
        for reply in *replies {
            call.send();
            call.reply(*reply);
        }
        if !given_up {
            held.push(call);
        }
    }
    let claim = request.claim();
    drop(held);
    let page = service.metrics();
    let in_flight = calls.iter().filter(|(_, replies)| matches!(replies.last(), Some(Reply::Hang)));
    let abandoned = page.sum("onus_calls_total", &[("outcome", "abandoned")]);
    assert!(abandoned >= in_flight.count() as f64, "{calls:?}");
    claim
}

#[test]
fn dropped_calls_are_judged_when_the_answer_is_made() {
    // [drop-1] [drop-2] [drop-3] [drop-4] [drop-5] [claim-6] [claim-10] [criteria-3]
    let handoff =
        |callee: &str| format!("claimed;reason=handoff;attempt=1;origin=\"{callee}\";hops=1");
    let silent = |callee: &str| {
        format!("claimed;kind=silent;reason=handoff;attempt=1;origin=\"{callee}\";hops=1")
    };
    let unclaimed = |reason: &str, callee: &str| {
        format!("unclaimed;reason={reason};attempt=1;origin=\"{callee}\";hops=1")
    };
    let own = "claimed;reason=own;attempt=1;origin=\"a\";hops=0".to_owned();
    for (calls, claim) in [
        // In the first attempt: the retry is the caller's.
        (&[("b", &[Reply::Hang][..])][..], silent("b")),
        // In backoff what was read counts.
        (&[("b", &[CLAIMED])], handoff("b")),
        (&[("b", &[Reply::Error("claimed;kind=silent")])], silent("b")),
        // In the second attempt, or in backoff after it: a retry was made.
        (&[("b", &[CLAIMED, Reply::Hang])], unclaimed("in-flight", "b")),
        (&[("d", &[CLAIMED, CLAIMED])], unclaimed("in-flight", "d")),
        // Given up because another call failed: cancelled, and blamed on nobody.
        (&[("c", &[CLAIMED]), ("b", &[Reply::Hang])], handoff("c")),
        (&[("b", &[Reply::Hang]), ("c", &[CLAIMED])], handoff("c")),
        (&[("b", &[CLAIMED]), ("c", &[CLAIMED])], handoff("c")),
        // … but a retry that was made stays made.
        (&[("c", &[CLAIMED]), ("b", &[CLAIMED, Reply::Hang])], unclaimed("in-flight", "b")),
        // A failure that is blamed on nobody is no reason to give up another call.
        (&[("open", &[CLAIMED]), ("b", &[Reply::Hang])], silent("b")),
        (&[("open", &[Reply::Hang])], own.clone()),
        // All of them together.
        (&[("b", &[Reply::Hang]), ("c", &[Reply::Hang])], silent("b")),
        (&[("c", &[Reply::Hang]), ("b", &[CLAIMED, Reply::Hang])], unclaimed("in-flight", "b")),
        (&[("b", &[Reply::Ok]), ("c", &[Reply::Hang])], silent("c")),
    ] {
        for given_up in [true, false] {
            assert_eq!(claim_after(calls, given_up), claim, "given up: {given_up}: {calls:?}");
        }
    }
}

/// Everything that learning counts, as labels and values.
fn learnt(service: &Service) -> Vec<(String, f64)> {
    let page = service.metrics();
    let families = ["onus_edge_requests_total", "onus_clean_requests_total"];
    let series = families.iter().flat_map(|family| page.series(family, &[]));
    let counted = series.filter(|(_, value)| *value > 0.0);
    counted.map(|(labels, value)| (labels.to_owned(), value)).collect()
}

#[test]
fn calls_without_an_outcome_teach_nothing() {
    // [drop-4] [class-2]
    for failed in [false, true] {
        let service = Service::enforcing(|_| {});
        let request = service.request();
        request.call("b").play(&[Reply::Hang]);
        let _open = request.call("c");
        request.answer(failed, &[]);
        let clean = "{caller=\"a\",caller_method=\"GET /in\",outcome=\"ok\"}".to_owned();
        let expected = if failed { vec![] } else { vec![(clean, 1.0)] };
        assert_eq!(learnt(&service), expected, "failed: {failed}");
    }
}

#[test]
fn a_cancelled_request_teaches_nothing() {
    // [drop-4] [class-2]
    let service = Service::enforcing(|_| {});
    let request = service.request();
    request.call("b").play(&[CLAIMED]);
    request.inbound.cancelled(service.now());
    assert_eq!(request.claim(), "", "nobody hears the answer");
    service.pass(Duration::from_secs(1));
    assert_eq!(learnt(&service), []);
    let page = service.metrics();
    assert_eq!(page.sum("onus_requests_total", &[("outcome", "cancelled")]), 1.0);
    assert_eq!(page.sum("onus_requests_total", &[]), 1.0);
}

#[test]
fn a_call_that_ends_after_the_answer_changes_no_claim() {
    // [drop-1]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request();
    let mut call = request.call("b");
    call.send();
    let mut answer = headers(&[]);
    request.inbound.answer(true, false, &mut answer, service.now());
    let claim = line(&answer, "onus-claim");
    assert_eq!(claim, "claimed;kind=silent;reason=handoff;attempt=1;origin=\"b\";hops=1");
    call.reply(Reply::Error("unclaimed"));
    drop(call);
    assert_eq!(request.claim(), "", "a request is judged once");
    assert_eq!(service.metrics().sum("onus_claims_total", &[]), 1.0);
}

#[test]
fn a_call_that_was_never_sent_made_no_attempt() {
    // [criteria-4] [claim-6] [claim-7] [deadline-1]
    let handoff = "claimed;reason=handoff;attempt=1;origin=\"b\";hops=1";
    let gated = "unclaimed;reason=gated;attempt=1;origin=\"b\";hops=1";
    for silent_claims in [false, true] {
        for (refused, claim) in [
            (Some(Stop::NoTime), handoff),
            (Some(Stop::Gated), gated),
            // Given up before it was sent.
            (None, handoff),
        ] {
            let service = Service::enforcing(|config| {
                config.silent_claims = silent_claims;
                config.retry("b", retries(2));
            });
            let request = service.request();
            let mut call = request.call("b");
            if let Some(stop) = refused {
                call.outbound.refused(stop);
            }
            drop(call);
            // The same call, made after all, is its first attempt.
            let mut again = request.call("b");
            assert_eq!(line(&again.send(), "onus-attempt"), "", "{refused:?}");
            drop(again);

            let request = service.request();
            let mut call = request.call("b");
            if let Some(stop) = refused {
                call.outbound.refused(stop);
            }
            drop(call);
            assert_eq!(request.claim(), claim, "{refused:?}, silent-claims: {silent_claims}");
        }
    }
    // The caller's time has passed before the call.
    let service = Service::enforcing(|_| {});
    let request = service.request_with(&[("x-envoy-expected-rq-timeout-ms", "100")]);
    service.pass(Duration::from_millis(100));
    let mut call = request.call("b");
    assert_eq!(call.outbound.may_send(|| service.now()), Err(Stop::NoTime));
    call.outbound.refused(Stop::NoTime);
    drop(call);
    assert_eq!(request.claim(), handoff);
}
