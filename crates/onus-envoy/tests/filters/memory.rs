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
