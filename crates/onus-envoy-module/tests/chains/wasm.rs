//! The same filters as a Wasm plugin, whose workers share nothing but bytes.

use crate::cast::{App, CONTEXT, Chain, Envoy, Filters, Plan, Protocol, Retries, Setup, until};
use crate::chains::claims::{
    changed_under_load, claim, many_of_one_trace, one_after_the_other_dies,
};
use crate::chains::storms::{half_of_the_trees, observe_equals_off};

#[tokio::test]
async fn the_plugin_stops_the_storms_that_the_module_stops() {
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_stops_the_storms") else { return };
    for (protocol, retries, requests, handled) in [
        (Protocol::Grpc, Retries::Istio, 20, &[20, 20, 20, 60][..]),
        (Protocol::Http1, Retries::On5xx(1), 200, &[200, 200, 200, 400]),
        (Protocol::Http2, Retries::On5xx(1), 20, &[20, 20, 40]),
    ] {
        // Each Envoy compiles the plugin, which is the slow part.
        let filters = vec![Filters::Wasm("enforce"); handled.len()];
        let chain = Chain::broken_at_its_end(&binary, protocol, &filters, retries).await;
        let seen = chain.send(requests, &[]).await;
        assert_eq!(chain.handled(), handled, "{protocol:?}: {seen:?}");
    }
}

#[tokio::test]
async fn the_plugin_observes_as_if_it_were_off() {
    // [mode-2] [mode-5]
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_observes") else { return };
    for mode in ["observe", "off"] {
        observe_equals_off(&binary, &[Filters::Wasm(mode), Filters::Wasm(mode)], mode).await;
    }
}

#[tokio::test]
async fn the_plugin_enforces_whole_request_trees() {
    // [mode-7]
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_enforces_trees") else { return };
    half_of_the_trees(&binary, &vec![Filters::Wasm("enforce 50%"); 3]).await;
}

#[tokio::test]
async fn the_plugin_claims_what_envoy_answers_for_the_dead() {
    // [claim-3] [claim-8]
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_claims_for_the_dead") else { return };
    one_after_the_other_dies(&binary, Protocol::Http1, &Filters::Wasm("enforce")).await;
}

#[tokio::test]
async fn the_plugin_tells_own_errors_from_those_of_dependencies() {
    // [claim-3] [claim-5] [claim-6] [claim-8]
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_tells_own_errors") else { return };
    const LOST: &str = "claimed;reason=context-lost;origin=\"a\";hops=0";
    for (hands_on, dependency) in
        [(CONTEXT, "unclaimed;reason=not-configured;origin=\"b\";hops=1"), (&["traceparent"], LOST)]
    {
        let setup = |app, retries| Setup { app, filters: Filters::Wasm("enforce"), retries };
        let caller = App::planned_caller(Protocol::Http1, hands_on).await;
        let callee = App::planned_callee(Protocol::Http1).await;
        let services = vec![setup(caller, Retries::On5xx(1)), setup(callee, Retries::None)];
        let chain = Chain::start(&binary, Protocol::Http1, services).await;
        let silent = "claimed;kind=silent;reason=handoff;origin=\"b\";hops=1";
        for (plan, expected) in [
            (Plan::Ok, ""),
            (Plan::Own, "claimed;reason=own;origin=\"a\";hops=0"),
            (Plan::Dependency, dependency),
            (Plan::Both, dependency),
            (Plan::Swallowed, ""),
            (Plan::Abandoned, if hands_on == CONTEXT { silent } else { LOST }),
        ] {
            let seen = chain.send(1, &[("x-plan", &plan.name())]).await;
            assert_eq!(claim(&seen), expected, "{hands_on:?} {plan:?}");
        }
    }
}

#[tokio::test]
async fn the_plugin_does_not_confuse_concurrent_requests_of_one_trace() {
    // [correlate-1]
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_does_not_confuse") else { return };
    for protocol in [Protocol::Http1, Protocol::Grpc] {
        many_of_one_trace(&binary, protocol, &Filters::Wasm("enforce"), 800).await;
    }
}

#[tokio::test]
async fn claims_of_the_plugin_stay_true_while_its_configuration_changes() {
    // [correlate-1]
    let Some(binary) = Envoy::binary_and_plugin("claims_of_the_plugin_stay_true") else { return };
    changed_under_load(&binary, Filters::Wasm).await;
}

#[tokio::test]
async fn the_plugin_tells_what_it_counted_though_no_further_request_comes() {
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_tells_what_it_counted") else { return };
    let filters = [Filters::Wasm("enforce"), Filters::Wasm("enforce")];
    let chain =
        Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
    chain.send(1, &[]).await;
    until("the one request is in Envoy's counters", async || {
        let page = chain.envoys[0].get("/stats?filter=onus_requests_total").await;
        let page = page.unwrap_or_default();
        page.lines().filter_map(|line| line.rsplit_once(": ")?.1.parse::<u64>().ok()).sum::<u64>()
            == 1
    })
    .await;
}
