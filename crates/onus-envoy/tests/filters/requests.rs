//! Requests through the inbound filter.

use onus_envoy::{Counters, FAMILIES, Timestamp};

use super::{Serving, enforcing, line, service};

/// How the requests ended that were counted.
#[derive(Default)]
struct Outcomes(Vec<String>);

impl Counters for Outcomes {
    fn add(&mut self, family: usize, values: &[&str], count: u64) {
        if FAMILIES[family].name == "onus_requests_total" && count > 0 {
            self.0.push(format!("{count} {}", values[2]));
        }
    }
}

#[test]
fn flags_tell_how_an_answer_ended_whose_end_is_not_shown() {
    const CONNECTION_TERMINATION: u64 = 1 << 6;
    const DELAY_INJECTED: u64 = 1 << 8;
    const CALLER_GONE: u64 = 1 << 14;
    for (status, flags, expected) in [
        (200, Some(0), "1 ok"),
        (200, Some(DELAY_INJECTED), "1 ok"),
        (200, Some(CONNECTION_TERMINATION), "1 error"),
        (200, Some(CONNECTION_TERMINATION | CALLER_GONE), "1 cancelled"),
        (200, None, "1 cancelled"),
        (500, Some(0), "1 error"),
        (500, Some(CALLER_GONE), "1 error"),
        (500, None, "1 error"),
    ] {
        let service = enforcing();
        let Serving { mut filter, mut stream } = Serving::of(&service, &[]);
        (stream.status, stream.flags) = (status, flags);
        filter.on_response(&mut stream, false);
        filter.on_end(&stream);
        let mut outcomes = Outcomes::default();
        service.export(&mut outcomes, Timestamp::ZERO);
        assert_eq!(outcomes.0, [expected], "{status}, flags {flags:?}");
    }
}

#[test]
fn a_success_is_touched_as_little_as_can_be() {
    let serving = Serving::of(&enforcing(), &[("tracestate", "k=v"), ("accept", "*/*")]);
    assert!(serving.state().starts_with("onus=") && serving.state().ends_with(",k=v"));
    assert_eq!(serving.stream.writes.get("request"), Some(&1), "the token");
    let mut stream = serving.stream.clone();
    let mut filter = serving.filter;
    filter.on_response(&mut stream, true);
    filter.on_end(&stream);
    assert_eq!(stream.writes.get("response"), None);
}

#[test]
fn off_touches_nothing() {
    // [mode-2]
    let service = service(r#"{"service": "a", "mode": "off"}"#);
    let lines = [("onus-mark", "1"), ("onus-attempt", "2"), ("tracestate", "onus=x,k=v")];
    let serving = Serving::of(&service, &lines);
    assert!(serving.stream.writes.is_empty(), "{:?}", serving.stream);
    let answer = serving.answer(503, &[("onus-claim", "claimed")]);
    assert_eq!(line(&answer, "onus-claim"), "claimed", "as the application said");
}

#[test]
fn a_claim_that_the_application_copied_is_replaced() {
    // [wire-6]
    for (status, expected) in
        [(500, "claimed;reason=own;attempt=3;origin=\"a\";hops=0"), (200, ""), (404, "")]
    {
        let serving = Serving::of(&enforcing(), &[("x-envoy-attempt-count", "3")]);
        let answer = serving.answer(status, &[("onus-claim", "unclaimed;reason=exhausted")]);
        assert_eq!(line(&answer, "onus-claim"), expected, "{status}");
    }
}

#[test]
fn callers_outside_are_believed_nothing_and_told_nothing() {
    // [trust-1]
    let service = service(r#"{"service": "a", "mode": "enforce", "untrusted-callers": true}"#);
    let serving = Serving::of(&service, &[("onus-mark", "1"), ("onus-later", "1")]);
    assert_eq!(line(&serving.stream.request, "onus-mark"), "");
    assert_eq!(line(&serving.stream.request, "onus-later"), "", "a name of a later version");
    let answer = serving.answer(500, &[("onus-claim", "claimed"), ("x-envoy-ratelimited", "true")]);
    assert!(answer.is_empty(), "{answer:?}");
}

#[test]
fn a_second_name_for_claims_is_read_and_written() {
    let service = service(r#"{"service": "a", "mode": "enforce", "claim-alias": "x-mesh-claim"}"#);
    let answer = Serving::of(&service, &[]).answer(500, &[("x-mesh-claim", "copied")]);
    assert_eq!(line(&answer, "x-mesh-claim"), line(&answer, "onus-claim"));
    assert!(line(&answer, "onus-claim").starts_with("claimed;reason=own"));
}

#[test]
fn a_grpc_claim_is_in_the_block_that_has_the_status() {
    // [wire-4]
    let service = enforcing();
    for one_block in [true, false] {
        let mut serving = Serving::of(&service, &[("content-type", "application/grpc")]);
        let stream = &mut serving.stream;
        stream.method = "POST";
        serving.filter.on_request(stream);
        let grpc = ("content-type", "application/grpc");
        let status = ("grpc-status", "14");
        stream.response = super::headers(&[grpc]);
        if one_block {
            stream.response = super::headers(&[grpc, status]);
        }
        serving.filter.on_response(stream, one_block);
        if !one_block {
            assert_eq!(line(&stream.response, "onus-claim"), "");
            stream.trailers = super::headers(&[status]);
            serving.filter.on_trailers(stream);
        }
        serving.filter.on_end(stream);
        let block = if one_block { &stream.response } else { &stream.trailers };
        assert!(line(block, "onus-claim").starts_with("claimed;reason=own"), "{stream:?}");
    }
}
