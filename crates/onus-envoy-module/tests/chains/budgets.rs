//! Budgets of Onus over retries of Envoy, by the filter of attempts.

use crate::cast::{Chain, Envoy, Filters, Protocol, Retries};

#[tokio::test]
async fn a_budget_of_onus_holds_over_envoy_s_retries() {
    // [budget-1]
    let Some(binary) = Envoy::binary("a_budget_of_onus_holds") else { return };
    const TENTH: &str = "{attempts: 2, budget-percent: 10, budget-min-per-second: 0, \
                         budget-from-successes: false, gate: false}";
    const ALL: &str = "{attempts: 2, budget-percent: 100, budget-min-per-second: 0, \
                       budget-from-successes: false, gate: false}";
    // No call ends ok, so nothing fills the budget of the default.
    const DEFAULT: &str = "{attempts: 2, budget-min-per-second: 0}";
    for (mode, retry, handled) in [
        ("enforce", ALL, [200, 400]),
        ("enforce", TENTH, [200, 220]),
        // A limit that an operator configured holds in every mode.
        ("off", TENTH, [200, 220]),
        ("enforce", DEFAULT, [200, 200]),
        ("enforce", "{attempts: 1}", [200, 400]),
    ] {
        let filters = [Filters::Attempts(mode, retry), Filters::module("enforce")];
        let chain =
            Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
        let seen = chain.send(200, &[]).await;
        assert_eq!(chain.handled(), handled, "{mode} {retry}: {seen:?}");
        let claim = if mode == "off" { "" } else { "unclaimed" };
        assert_eq!(seen.line("onus-claim").split(';').next().unwrap(), claim, "{seen:?}");
    }
}

#[tokio::test]
async fn watched_attempts_count_and_carry_their_number() {
    // [attempt-1] [mark-3]
    let Some(binary) = Envoy::binary("watched_attempts_count") else { return };
    const LIMITS: &str = "{attempts: 2, budget-percent: 100, budget-from-successes: false, \
                          gate: false, probes: false}";
    let watched = || Filters::Attempts("enforce", LIMITS);
    // The last service has no Onus, and its application sees all of a request.
    let filters = [watched(), watched(), Filters::None];
    let chain =
        Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(2)).await;
    let seen = chain.send(20, &[]).await;
    assert_eq!(chain.handled(), [20, 20, 40]);
    let claim = "unclaimed;reason=suppressed;attempt=1;origin=\"c\";hops=2";
    assert_eq!(seen.line("onus-claim"), claim);
    let last = &chain.apps[2];
    assert_eq!(last.seen("onus-attempt"), ["", "2"].repeat(20));
    assert_eq!(last.seen("onus-mark"), ["", "1"].repeat(20), "a reply without a claim");
    assert_eq!(last.seen("onus-call"), [""; 40], "it never leaves Envoy");
    assert_eq!(last.seen("tracestate"), [""; 40], "nor does a token");
}

#[tokio::test]
async fn a_status_in_trailers_is_retried_where_heads_are_held() {
    // [decide-17]
    let Some(binary) = Envoy::binary("a_status_in_trailers_is_retried") else { return };
    const HOLD: &str = "{attempts: 2, budget-percent: 100, budget-from-successes: false, \
                        gate: false, probes: false, hold-grpc: true}";
    const PASS: &str = "{attempts: 2, budget-percent: 100, budget-from-successes: false, \
                        gate: false, probes: false}";
    for (limits, protocol, handled) in [
        (PASS, Protocol::GrpcLate, [20, 20, 20]),
        (HOLD, Protocol::GrpcLate, [20, 20, 40]),
        // A message has been sent.
        (HOLD, Protocol::GrpcTrailers, [20, 20, 20]),
    ] {
        let watched = || Filters::Attempts("enforce", limits);
        let filters = [watched(), watched(), Filters::module("enforce")];
        let chain = Chain::broken_at_its_end(&binary, protocol, &filters, Retries::Istio).await;
        let seen = chain.send(20, &[]).await;
        assert_eq!(chain.handled(), handled, "{limits} {protocol:?}: {seen:?}");
        assert_eq!((seen.status, seen.grpc_status), (200, Some(14)));
        assert_eq!(seen.headers.get_all("grpc-status").iter().count(), 1, "in the trailers only");
    }
}
