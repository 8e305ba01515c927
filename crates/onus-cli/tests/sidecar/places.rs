//! The places where a sidecar may stand, each with a real Envoy.

use super::cast::envoy::Envoy;
use super::cast::{Line, Sidecar, Stub, answers, gateway, relay};

/// A service whose application calls `peer`.
struct Service {
    sidecar: Sidecar,
    _app: Stub,
}

impl Service {
    /// `inbound` and `peer` are more of their configurations.
    async fn start(name: &str, inbound: &str, peer: &str) -> Self {
        let (app, tell) = relay().await;
        let sidecar = Sidecar::start(&format!(
            "service: {name}\nmode: enforce\n\
             inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"{inbound}}}\n\
             callees: {{peer: {{{peer}}}}}\n",
            app.address
        ))
        .await;
        tell.send_replace(Some(sidecar.outbound));
        Self { sidecar, _app: app }
    }
}

/// Sends requests there; the status and the claim of each answer, which are all the same.
async fn ask(to: std::net::SocketAddr, more: &str) -> (u16, String) {
    let mut said = Vec::new();
    for root in 1..=ROOTS {
        let mut line = Line::to(to).await;
        let trace = format!("traceparent: 00-{root:032x}-{root:016x}-01\r\n");
        line.say(format!("GET / HTTP/1.1\r\nhost: peer\r\n{trace}{more}\r\n")).await;
        let head = line.head().await.expect("an answer");
        let claim = head.headers.get("onus-claim").map_or("-", |claim| claim.to_str().unwrap());
        said.push((head.status(), claim.to_owned()));
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    said.remove(0)
}

fn twice(address: std::net::SocketAddr) -> String {
    format!(
        "address: \"{address}\", retry: {{attempts: 2, no-budget: true, no-gate: true, \
         no-probes: true, backoff-base: 1ms, backoff-max: 2ms}}"
    )
}

fn below(address: std::net::SocketAddr) -> String {
    format!("address: \"{address}\", retries: {{made-by: below, like: istio-default}}")
}

#[tokio::test]
async fn in_front_of_a_mesh_its_retries_are_counted_and_none_is_added() {
    let Some(binary) = Envoy::binary("in_front_of_a_mesh_its_retries_are_counted") else { return };
    let last = answers("503 X").await;
    let envoy = Envoy::start(&binary, &gateway::in_front_of(&[last.address])).await;
    let service = Service::start("A", "", &below(envoy.port("inbound"))).await;
    let (status, claim) = ask(service.sidecar.inbound, "").await;
    assert_eq!((status, last.seen().len()), (503, 3 * ROOTS));
    // It knows that three attempts were made, and nobody above it makes more.
    assert_eq!(claim, "unclaimed;reason=not-configured;attempt=1;origin=\"peer\";hops=1");
}

#[tokio::test]
async fn in_front_of_a_mesh_the_vetoes_of_the_callee_stop_it() {
    let Some(binary) = Envoy::binary("in_front_of_a_mesh_the_vetoes_stop_it") else { return };
    let last = answers("503 X").await;
    let callee = Service::start("B", "", &twice(last.address)).await;
    let envoy = Envoy::start(&binary, &gateway::in_front_of(&[callee.sidecar.inbound])).await;
    let service = Service::start("A", "", &below(envoy.port("inbound"))).await;
    let (status, claim) = ask(service.sidecar.inbound, "").await;
    assert_eq!((status, last.seen().len()), (503, 2 * ROOTS), "one retry, by the last caller");
    assert_eq!(claim, "unclaimed;reason=suppressed;attempt=1;origin=\"peer\";hops=2");
}

#[tokio::test]
async fn behind_a_gateway_its_retries_are_stopped_where_they_help_nobody() {
    let Some(binary) = Envoy::binary("behind_a_gateway_its_retries_are_stopped") else { return };
    let last = answers("503 X").await;
    let service = Service::start("A", "", &twice(last.address)).await;
    let envoy = Envoy::start(&binary, &gateway::in_front_of(&[service.sidecar.inbound])).await;
    let (status, _) = ask(envoy.port("inbound"), "").await;
    assert_eq!((status, last.seen().len()), (503, 2 * ROOTS));
    // An error of its own is retried by the gateway, as without Onus.
    let own = answers("503 X").await;
    let sidecar = Sidecar::start(&format!(
        "service: A\nmode: enforce\ninbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n",
        own.address
    ))
    .await;
    let envoy = Envoy::start(&binary, &gateway::in_front_of(&[sidecar.inbound])).await;
    assert_eq!((ask(envoy.port("inbound"), "").await.0, own.seen().len()), (503, 3 * ROOTS));
}

#[tokio::test]
async fn behind_a_gateway_of_strangers_nobody_is_believed_and_nobody_is_told() {
    let Some(binary) = Envoy::binary("behind_a_gateway_of_strangers") else { return };
    let last = answers("503 X").await;
    let service = Service::start("A", ", untrusted-callers: true", &twice(last.address)).await;
    let envoy = Envoy::start(&binary, &gateway::in_front_of(&[service.sidecar.inbound])).await;
    let forged = "onus-mark: 1\r\nonus-attempt: 7\r\nx-envoy-ratelimited: true\r\n";
    let answer = ask(envoy.port("inbound"), forged).await;
    assert_eq!(answer, (503, "-".to_owned()));
    // The gateway hears no veto, so each of its three attempts costs two.
    assert_eq!(last.seen().len(), 6 * ROOTS);
    let page = service.sidecar.metrics().await;
    assert_eq!(page.sum("onus_forged_requests_total", &[]), 3 * ROOTS as u64);
}

const ROOTS: usize = 5;
