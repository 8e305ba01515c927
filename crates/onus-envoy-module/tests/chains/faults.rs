//! Faults inside the filters, which cost no request.

use crate::cast::{Chain, Envoy, Filters, Protocol, Retries, until};
use crate::chains::operating::sum;

#[tokio::test]
async fn a_fault_in_a_hook_costs_no_request() {
    // [fault-1]
    let Some(binary) = Envoy::binary("a_fault_in_a_hook") else { return };
    let filters = vec![Filters::module("enforce"); 2];
    let mut chain =
        Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
    let seen = chain.send(20, &[("x-onus-fault", "1")]).await;
    assert_eq!((seen.status, seen.line("onus-claim")), (500, ""));
    let seen = chain.send(1, &[]).await;
    assert!(seen.line("onus-claim").starts_with("unclaimed"), "{seen:?}");
    assert_eq!(chain.handled(), [21, 42]);
    assert!(chain.envoys.iter_mut().all(Envoy::is_alive));
    let log = chain.envoys[0].log();
    let told = log.matches("a fault that cost no request").count();
    assert_eq!(told, 10, "a panic in each request must not fill the disk: {log}");
}

#[tokio::test]
async fn a_fault_in_any_hook_costs_no_request() {
    // [fault-1]
    let Some(binary) = Envoy::binary("a_fault_in_any_hook") else { return };
    // Heads of answers are held, so that a fault meets one that waits.
    const HOLD: &str = "{attempts: 2, budget-percent: 100, budget-from-successes: false, \
                        gate: false, probes: false, hold-grpc: true}";
    const HOOKS: [&str; 6] = [
        "request_headers",
        "request_end",
        "response_headers",
        "response_body",
        "response_trailers",
        "stream_complete",
    ];
    // The first one's answers have no body; a stream is complete for all filters but that of
    // attempts.
    for (protocol, struck) in [(Protocol::GrpcLate, 14), (Protocol::GrpcTrailers, 17)] {
        let filters = vec![Filters::Attempts("enforce", HOLD); 2];
        let mut chain = Chain::broken_at_its_end(&binary, protocol, &filters, Retries::Istio).await;
        for hook in HOOKS {
            let seen = chain.send(5, &[("x-onus-fault", hook)]).await;
            assert_eq!((seen.status, seen.grpc_status), (200, Some(14)), "{hook} {seen:?}");
            let seen = chain.send(1, &[]).await;
            assert!(seen.line("onus-claim").contains("claimed"), "after {hook}: {seen:?}");
        }
        assert_eq!(chain.handled()[0], 36);
        assert!(chain.envoys.iter_mut().all(Envoy::is_alive));
        let mut told = 0;
        until("the faults are counted", async || {
            chain.send(1, &[]).await;
            told = sum(&chain.envoys[0], "onus_faults_total", &[]).await;
            told >= 5 * struck
        })
        .await;
        assert_eq!(told, 5 * struck, "each hook of each filter, and nothing else");
    }
}
