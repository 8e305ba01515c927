//! A persistent failure at the end of a chain, under the retry policies that people have.

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
    for (filters, requests, handled) in [
        (Filters::None, 200, [200, 400, 800, 1600]),
        (Filters::module("enforce"), 200, [200, 200, 200, 400]),
        // Observing equals off, to the unit, in all that a caller or callee can see.
        (Filters::module("observe"), 20, [20, 40, 80, 160]),
        (Filters::module("off"), 20, [20, 40, 80, 160]),
    ] {
        let filters = vec![filters; 4];
        let chain =
            Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
        let seen = chain.send(requests, &[]).await;
        assert_eq!(chain.handled(), handled, "{filters:?}: {seen:?}");
        assert_eq!(seen.status, 500);
    }
}

#[tokio::test]
async fn in_a_mixed_mesh_the_last_two_stop_what_they_can() {
    let Some(binary) = Envoy::binary("in_a_mixed_mesh") else { return };
    let with = || Filters::module("enforce");
    let filters = [Filters::None, Filters::None, with(), with()];
    let chain =
        Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
    chain.send(50, &[]).await;
    assert_eq!(chain.handled(), [50, 100, 100, 200]);
}
