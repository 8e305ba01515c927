//! A persistent failure at the end of a chain, under the retry policies that people have.

use std::path::Path;

use crate::cast::{Chain, Envoy, Filters, Protocol, Retries};

#[tokio::test]
async fn istio_s_default_policy_retries_next_to_the_fault_only() {
    let Some(binary) = Envoy::binary("istio_s_default_policy") else { return };
    for (filters, handled) in
        [(Filters::None, [20, 60, 180, 540]), (Filters::module("enforce"), [20, 20, 20, 60])]
    {
        let filters = vec![filters; 4];
        let chain =
            Chain::broken_at_its_end(&binary, Protocol::Grpc, &filters, Retries::Istio).await;
        let seen = chain.send(20, &[]).await;
        assert_eq!(chain.handled(), handled, "{filters:?}: {seen:?}");
        assert_eq!(seen.grpc_status, Some(14));
    }
}

#[tokio::test]
async fn retry_on_5xx_doubles_once_and_not_at_every_level() {
    let Some(binary) = Envoy::binary("retry_on_5xx") else { return };
    for (protocol, mode, requests, handled) in [
        (Protocol::Http1, None, 200, [200, 400, 800, 1600]),
        (Protocol::Http1, Some("enforce"), 200, [200, 200, 200, 400]),
        (Protocol::Http2, Some("enforce"), 200, [200, 200, 200, 400]),
    ] {
        let filters = vec![mode.map_or(Filters::None, Filters::module); 4];
        let chain = Chain::broken_at_its_end(&binary, protocol, &filters, Retries::On5xx(1)).await;
        let seen = chain.send(requests, &[]).await;
        assert_eq!(chain.handled(), handled, "{protocol:?} {mode:?}: {seen:?}");
        assert_eq!(seen.status, 500);
    }
}

#[tokio::test]
async fn observing_equals_off_to_the_unit() {
    // [mode-2] [mode-5]
    let Some(binary) = Envoy::binary("observing_equals_off") else { return };
    for mode in ["observe", "off"] {
        observe_equals_off(&binary, &vec![Filters::module(mode); 4], mode).await;
    }
}

/// In all that a caller or callee can see but the claim.
pub(super) async fn observe_equals_off(binary: &Path, filters: &[Filters], mode: &str) {
    for (protocol, retries, attempts) in [
        (Protocol::Http1, Retries::On5xx(1), 2),
        (Protocol::Http2, Retries::On5xx(1), 2),
        (Protocol::Grpc, Retries::Istio, 3),
    ] {
        let chain = Chain::broken_at_its_end(binary, protocol, filters, retries).await;
        let seen = chain.send(10, &[]).await;
        let levels = u32::try_from(filters.len()).unwrap();
        let storm: Vec<u64> = (0..levels).map(|level| 10 * u64::pow(attempts, level)).collect();
        assert_eq!(chain.handled(), storm, "{mode} {protocol:?}: {seen:?}");
        assert_eq!(seen.line("onus-claim").is_empty(), mode == "off", "{protocol:?}: {seen:?}");
        for veto in ["x-envoy-ratelimited", "grpc-retry-pushback-ms"] {
            assert_eq!(seen.line(veto), "", "{mode} {protocol:?}: {seen:?}");
        }
    }
}

#[tokio::test]
async fn in_a_mixed_mesh_the_last_two_stop_what_they_can() {
    let Some(binary) = Envoy::binary("in_a_mixed_mesh") else { return };
    let (with, none) = (|| Filters::module("enforce"), || Filters::None);
    // An Envoy that does not tell of its attempts needs a callee that does.
    let told = !Envoy::is_old(&binary);
    let last_two_plain = if told { [50, 50, 100, 200] } else { [50, 100, 200, 400] };
    for (filters, handled) in [
        ([none(), none(), with(), with()], [50, 100, 100, 200]),
        // A veto stops an Envoy that knows nothing of Onus; its own error is no longer claimed.
        ([with(), none(), with(), with()], [50, 100, 100, 200]),
        ([with(), with(), none(), none()], last_two_plain),
    ] {
        let chain =
            Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
        chain.send(50, &[]).await;
        assert_eq!(chain.handled(), handled, "{filters:?}");
    }
}

#[tokio::test]
async fn a_share_is_drawn_for_whole_request_trees() {
    // [mode-7]
    let Some(binary) = Envoy::binary("a_share_is_drawn") else { return };
    half_of_the_trees(&binary, &vec![Filters::module("enforce 50%"); 3]).await;
}

/// Each request tree of a chain of three is enforced as a whole, or not at all.
pub(super) async fn half_of_the_trees(binary: &Path, filters: &[Filters]) {
    const TREES: u64 = 40;
    let chain = Chain::broken_at_its_end(binary, Protocol::Http1, filters, Retries::On5xx(1)).await;
    let (mut before, mut enforced) = (vec![0; 3], 0);
    for tree in 1..=TREES {
        // Spread over all that an id can be.
        let id = u128::from(tree).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let trace = format!("00-{id:032x}-00f067aa0ba902b7-01");
        chain.send(1, &[("traceparent", &trace)]).await;
        let handled = chain.handled();
        let tree: Vec<u64> = handled.iter().zip(&before).map(|(now, then)| now - then).collect();
        match tree[..] {
            [1, 1, 2] => enforced += 1,
            [1, 2, 4] => {}
            _ => panic!("{trace}: {tree:?} is neither"),
        }
        before = handled;
    }
    assert!((TREES / 4..=TREES * 3 / 4).contains(&enforced), "{enforced} of {TREES}");
}
