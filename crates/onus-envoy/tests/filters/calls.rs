//! Calls through the outbound filter, and what the claim of their request makes of them.

use onus_envoy::{AttemptFilter, Head};

use super::{Calling, Serving, enforcing, line, service};

/// Envoy's flags.
const OVERFLOW: u64 = 1 << 7;
const CONNECT_FAILURE: u64 = 1 << 5;
const TERMINATION: u64 = 1 << 6;
const CALLER_GONE: u64 = 1 << 14;
const RETRY_LIMIT: u64 = 1 << 15;

/// What Envoy shows when the final answer is there.
#[derive(Clone, Copy, Debug)]
struct Told {
    attempts: Option<u32>,
    is_reply: Option<bool>,
    flags: Option<u64>,
}

const fn told(attempts: u32, is_reply: bool, flags: u64) -> Told {
    Told { attempts: Some(attempts), is_reply: Some(is_reply), flags: Some(flags) }
}

#[test]
fn attempts_and_refusals_of_envoy_decide_on_the_claim() {
    // [criteria-1] [claim-6] [claim-8]
    const HANDOFF: &str = "claimed;reason=handoff;attempt=1;origin=\"b\";hops=1";
    const SILENT: &str = "claimed;kind=silent;reason=handoff;attempt=1;origin=\"b\";hops=1";
    let unclaimed = |reason| format!("unclaimed;reason={reason};attempt=1;origin=\"b\";hops=1");
    let unknown = Told { attempts: None, is_reply: None, flags: None };
    for (told, claim, expected) in [
        (told(1, true, 0), "claimed", HANDOFF.to_owned()),
        (told(2, true, RETRY_LIMIT), "claimed", unclaimed("not-configured")),
        (told(1, true, 0), "claimed;attempt=2", unclaimed("not-configured")),
        (told(1, true, 0), "unclaimed", unclaimed("suppressed")),
        (told(1, true, OVERFLOW), "claimed", unclaimed("budget-denied")),
        (told(1, true, 0), "", SILENT.to_owned()),
        (told(1, false, CONNECT_FAILURE), "", SILENT.to_owned()),
        (told(2, false, CONNECT_FAILURE | RETRY_LIMIT), "", unclaimed("not-configured")),
        (told(1, false, OVERFLOW), "", unclaimed("gated")),
        (unknown, "claimed", HANDOFF.to_owned()),
        (unknown, "claimed;attempt=2", unclaimed("not-configured")),
    ] {
        let service = enforcing();
        let serving = Serving::of(&service, &[]);
        let mut calling = Calling::of(&service, serving.state());
        assert_eq!(line(&calling.stream.request, "tracestate"), "", "no token leaves");
        let Told { attempts, is_reply, flags } = told;
        let stream = &mut calling.stream;
        (stream.attempts, stream.is_reply, stream.flags) = (attempts, is_reply, flags);
        let lines: &[_] = if claim.is_empty() { &[] } else { &[("onus-claim", claim)] };
        let seen = calling.answered(503, lines);
        assert!(!seen.contains_key("onus-claim"), "hidden from the application");
        assert_eq!(serving.claim(), expected, "{told:?} {claim}");
    }
}

#[test]
fn a_call_that_is_given_up_counts_by_the_attempts_it_had() {
    // [drop-2]
    for (attempts, expected) in [(1, "claimed"), (2, "unclaimed")] {
        let service = enforcing();
        let serving = Serving::of(&service, &[]);
        let mut calling = Calling::of(&service, serving.state());
        calling.stream.attempts = Some(attempts);
        calling.stream.flags = Some(CALLER_GONE);
        calling.filter.on_end(&calling.stream);
        assert_eq!(serving.claim().split(';').next(), Some(expected));
    }
}

#[test]
fn an_answer_that_breaks_after_its_head_has_failed() {
    for (flags, expected) in [
        (TERMINATION, "handoff"),
        (CALLER_GONE, "own"),
        (TERMINATION | CALLER_GONE, "own"),
        (0, "own"),
    ] {
        let service = enforcing();
        let serving = Serving::of(&service, &[]);
        let mut calling = Calling::of(&service, serving.state());
        calling.filter.on_response(&mut calling.stream, false);
        calling.filter.on_body(false);
        calling.stream.flags = Some(flags);
        calling.filter.on_end(&calling.stream);
        let claim = serving.claim();
        assert!(claim.contains(&format!("reason={expected};")), "{flags:#x}: {claim}");
    }
}

#[test]
fn a_repeat_by_the_application_goes_on_with_its_call() {
    // [attempt-6]
    let service = enforcing();
    let serving = Serving::of(&service, &[]);
    for _ in 0..2 {
        let calling = Calling::of(&service, serving.state());
        calling.answered(503, &[("onus-claim", "claimed")]);
    }
    assert!(serving.claim().starts_with("unclaimed;reason=not-configured"));
}

#[test]
fn a_callee_outside_is_not_believed() {
    // [trust-1]
    let config = r#"{"service": "a", "mode": "enforce", "callees": {"b": {"untrusted": true}}}"#;
    let service = service(config);
    let serving = Serving::of(&service, &[("onus-mark", "1")]);
    let calling = Calling::of(&service, serving.state());
    assert_eq!(line(&calling.stream.request, "onus-mark"), "", "it is told nothing");
    calling.answered(503, &[("onus-claim", "unclaimed;origin=\"z\"")]);
    let claim = serving.claim();
    assert_eq!(claim, "claimed;kind=silent;reason=handoff;attempt=1;origin=\"b\";hops=1");
}

#[test]
fn the_mark_goes_on_to_calls_and_from_nowhere_else() {
    // [mark-2]
    let service = enforcing();
    for mark in ["", "1"] {
        let lines: &[_] = if mark.is_empty() { &[] } else { &[("onus-mark", mark)] };
        let serving = Serving::of(&service, lines);
        assert_eq!(line(&serving.stream.request, "onus-mark"), "", "not for the application");
        let calling = Calling::of(&service, serving.state());
        assert_eq!(line(&calling.stream.request, "onus-mark"), mark);
    }
}

#[test]
fn an_attempt_after_silence_is_refused_where_the_verdict_was() {
    // [decide-11]
    for (attempts, refused) in [(1, None), (2, Some("onus: no retry after silence"))] {
        // One attempt is no policy of Onus's: it refuses nothing.
        let service = service(&format!(
            r#"{{"service": "a", "mode": "enforce", "callees": {{"b": {{"retry": {{
                "attempts": {attempts}, "gate": false, "probes": false}}}}}}}}"#
        ));
        let serving = Serving::of(&service, &[]);
        let state = [("tracestate", serving.state())];
        let mut calling = Calling::with(&service, "GET", &state, true);
        // What Envoy's policy makes; Onus allows one retry.
        for (number, expected) in [(1, None), (2, None), (3, refused)] {
            let mut attempt = AttemptFilter::new(service.clone());
            let head = attempt.on_request(&mut calling.stream, true);
            assert_eq!(calling.stream.refused.as_deref(), expected, "attempt {number}");
            assert_eq!(head == Head::Held, expected.is_some(), "attempt {number}");
            attempt.on_end(&calling.stream);
        }
    }
}
