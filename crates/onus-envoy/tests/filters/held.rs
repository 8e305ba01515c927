//! Heads of gRPC answers that are held for the first message or the trailers.

use std::sync::Arc;

use onus_envoy::{AttemptFilter, Head, Service};

use super::{Calling, Serving, headers, line, service};

fn holding(hold: bool) -> Arc<Service> {
    service(&format!(
        r#"{{"service": "a", "mode": "enforce", "callees": {{"b": {{"retry": {{
            "attempts": 2, "gate": false, "probes": false, "hold-grpc": {hold}}}}}}}}}"#
    ))
}

/// A gRPC call whose first attempt has left; `sent` to its end.
fn attempt(service: &Arc<Service>, state: &str, sent: bool) -> (Calling, AttemptFilter) {
    let grpc = ("content-type", "application/grpc");
    let mut calling = Calling::with(service, "POST", &[("tracestate", state), grpc], sent);
    let mut attempt = AttemptFilter::new(service.clone());
    let _ = attempt.on_request(&mut calling.stream, sent);
    calling.stream.response = headers(&[grpc]);
    (calling, attempt)
}

#[test]
fn a_head_is_held_only_where_it_may_be_and_nobody_waits_for_it() {
    // [decide-17]
    for (hold, sent, sent_later, expected) in [
        (true, true, false, Head::Held),
        (true, false, true, Head::Held),
        (true, false, false, Head::Passes),
        (false, true, false, Head::Passes),
    ] {
        let service = holding(hold);
        let serving = Serving::of(&service, &[]);
        let (mut calling, mut attempt) = attempt(&service, serving.state(), sent);
        if sent_later {
            attempt.on_request_end();
        }
        let head = attempt.on_response(&mut calling.stream);
        assert_eq!(head, expected, "{hold} {sent} {sent_later}");
    }
}

#[test]
fn a_status_in_trailers_is_lent_to_the_head_for_envoy_alone() {
    for (claim, vetoed, reason) in [("claimed", "", "handoff"), ("unclaimed", "true", "suppressed")]
    {
        let service = holding(true);
        let serving = Serving::of(&service, &[]);
        let (mut calling, mut attempt) = attempt(&service, serving.state(), true);
        assert_eq!(attempt.on_response(&mut calling.stream), Head::Held);
        calling.stream.trailers = headers(&[("grpc-status", "14"), ("onus-claim", claim)]);
        attempt.on_trailers(&mut calling.stream);
        let seen = &calling.stream;
        assert_eq!(line(&seen.response, "grpc-status"), "14", "Envoy's policy reads it");
        assert_eq!(line(&seen.response, "x-envoy-ratelimited"), vetoed, "{claim}");
        attempt.on_end(&calling.stream);
        let (Calling { mut filter, mut stream }, _) = (calling, attempt);
        filter.on_response(&mut stream, false);
        for name in ["grpc-status", "x-envoy-ratelimited"] {
            assert_eq!(line(&stream.response, name), "", "{name} is not the callee's");
        }
        filter.on_trailers(&mut stream);
        assert_eq!(line(&stream.trailers, "grpc-status"), "14");
        assert_eq!(line(&stream.trailers, "onus-claim"), "", "hidden from the application");
        filter.on_end(&stream);
        assert!(serving.claim().contains(&format!("reason={reason};")), "{claim}");
    }
}

#[test]
fn what_a_message_has_released_is_judged_at_its_end() {
    let service = holding(true);
    let serving = Serving::of(&service, &[]);
    let (mut calling, mut attempt) = attempt(&service, serving.state(), true);
    assert_eq!(attempt.on_response(&mut calling.stream), Head::Held);
    attempt.on_body();
    calling.stream.trailers = headers(&[("grpc-status", "14"), ("onus-claim", "claimed")]);
    attempt.on_trailers(&mut calling.stream);
    assert_eq!(line(&calling.stream.response, "grpc-status"), "");
    let Calling { mut filter, mut stream } = calling;
    filter.on_response(&mut stream, false);
    filter.on_trailers(&mut stream);
    filter.on_end(&stream);
    assert!(serving.claim().starts_with("claimed;reason=handoff"), "it could not be retried");
}
