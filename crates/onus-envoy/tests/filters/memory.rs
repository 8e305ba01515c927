//! What outlives a stream and a configuration.

use std::sync::Arc;

use onus_envoy::{FilterConfig, Hub, Timestamp};

use super::{Calling, Serving, enforcing};

#[test]
fn a_new_configuration_begins_anew_and_finds_requests_of_the_old_one() {
    let hub = Hub::new();
    let service = |text: &str| {
        let config = FilterConfig::parse(text.as_bytes()).unwrap();
        hub.service(config, 1, Timestamp::ZERO).unwrap()
    };
    let first = service(r#"{"service": "a", "mode": "enforce"}"#);
    let same = service(r#"{"mode": "enforce", "service": "a"}"#);
    assert!(Arc::ptr_eq(&first, &same), "the same configuration is the same service");
    let other = service(r#"{"service": "z", "mode": "enforce"}"#);
    assert!(!Arc::ptr_eq(first.agent(), other.agent()));
    let serving = Serving::of(&first, &[]);
    let changed = service(r#"{"service": "a", "mode": "enforce", "silent-claims": true}"#);
    assert!(!Arc::ptr_eq(first.agent(), changed.agent()));
    let calling = Calling::of(&changed, serving.state());
    calling.answered(503, &[("onus-claim", "unclaimed")]);
    let claim = serving.claim();
    assert_eq!(claim, "unclaimed;reason=suppressed;attempt=1;origin=\"b\";hops=1");
}

#[test]
fn filters_of_several_configurations_know_each_other_s_requests() {
    // [correlate-1] [correlate-4] [claim-2]
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let hub = Hub::new();
    let mut seed = 0;
    // While a listener is drained, filters of its configuration stand beside those of the next.
    let versions = [1, 2, 3].map(|attempts| {
        seed += 1;
        let text = format!(
            r#"{{"service": "a", "mode": "enforce", "callees": {{"z": {{"retry": {{"attempts": {attempts}}}}}}}}}"#
        );
        let config = FilterConfig::parse(text.as_bytes()).unwrap();
        hub.service(config, seed, Timestamp::ZERO).unwrap()
    });
    for (one, inbound) in versions.iter().enumerate() {
        for (other, outbound) in versions.iter().enumerate() {
            let call = |lines: &[(&'static str, &str)]| {
                let calling = Calling::with(outbound, "GET", lines, true);
                calling.answered(503, &[("onus-claim", "unclaimed;origin=\"c\";hops=0")]);
            };
            let suppressed = "unclaimed;reason=suppressed;attempt=1;origin=\"c\";hops=1";
            let serving = || Serving::of(inbound, &[("traceparent", TRACE)]);
            let by_token = serving();
            call(&[("tracestate", by_token.state())]);
            assert_eq!(by_token.claim(), suppressed, "{one} {other}: by its token");
            let by_id = serving();
            call(&[("traceparent", TRACE)]);
            assert_eq!(by_id.claim(), suppressed, "{one} {other}: by its id");
            let of_the_same_trace = [serving(), Serving::of(outbound, &[("traceparent", TRACE)])];
            call(&[("traceparent", TRACE)]);
            for claim in of_the_same_trace.map(Serving::claim) {
                assert!(claim.starts_with("claimed;reason=context-lost"), "{one} {other}: {claim}");
            }
        }
    }
}

#[test]
fn a_fault_forgets_the_stream_and_no_other() {
    // [fault-1]
    let service = enforcing();
    let other = Serving::of(&service, &[]);
    let mut broken = Serving::of(&service, &[]);
    let mut calling = Calling::of(&service, broken.state());
    broken.filter.on_fault(&broken.stream);
    calling.filter.on_fault();
    assert_eq!(broken.claim(), "", "no claim after a fault");
    let calling = Calling::of(&service, other.state());
    calling.answered(503, &[("onus-claim", "unclaimed")]);
    assert!(other.claim().starts_with("unclaimed;reason=suppressed"));
}
