//! Whose error it is, in the eyes of an Envoy.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName};
use tokio::task::JoinSet;

use crate::cast::{
    App, CONTEXT, Chain, Client, Envoy, Filters, Plan, Protocol, Retries, Seen, Setup, Sidecar,
    scratch, until,
};

/// Two services: what the first one answers depends on the plan in the request.
async fn two(
    binary: &Path,
    protocol: Protocol,
    retries: Retries,
    hands_on: &'static [&'static str],
    filters: &Filters,
) -> Chain {
    let caller = App::planned_caller(protocol, hands_on).await;
    let callee = App::planned_callee(protocol).await;
    let setup = |app, retries| Setup { app, filters: filters.clone(), retries };
    let services = vec![setup(caller, retries), setup(callee, Retries::None)];
    Chain::start(binary, protocol, services).await
}

/// The claim without what it says of attempts.
pub(super) fn claim(seen: &Seen) -> String {
    seen.line("onus-claim").replace(";attempt=1", "")
}

#[tokio::test]
async fn claims_tell_own_errors_from_those_of_dependencies() {
    // [claim-3] [claim-5] [claim-6] [claim-8] [wire-11]
    let Some(binary) = Envoy::binary("claims_tell_own_errors") else { return };
    const OWN: &str = "claimed;reason=own;origin=\"a\";hops=0";
    const HANDOFF: &str = "claimed;reason=handoff;origin=\"b\";hops=1";
    const SILENT: &str = "claimed;kind=silent;reason=handoff;origin=\"b\";hops=1";
    const UNCLAIMED: &str = "unclaimed;reason=not-configured;origin=\"b\";hops=1";
    for (protocol, retries) in [
        (Protocol::Http1, Retries::None),
        (Protocol::Http1, Retries::On5xx(1)),
        (Protocol::Http2, Retries::On5xx(1)),
        (Protocol::Grpc, Retries::Istio),
    ] {
        let chain = two(&binary, protocol, retries, CONTEXT, &Filters::module("enforce")).await;
        let dependency = if retries == Retries::None { HANDOFF } else { UNCLAIMED };
        for (plan, expected) in [
            (Plan::Ok, ""),
            (Plan::Own, OWN),
            (Plan::Dependency, dependency),
            (Plan::Both, dependency),
            (Plan::Swallowed, ""),
            (Plan::Abandoned, SILENT),
        ] {
            let seen = chain.send(1, &[("x-plan", &plan.name())]).await;
            assert_eq!(claim(&seen), expected, "{protocol:?} {retries:?} {plan:?}");
            let veto = if expected == UNCLAIMED { "true" } else { "" };
            assert_eq!(seen.line("x-envoy-ratelimited"), veto);
            let pushback =
                if protocol == Protocol::Grpc { veto.replace("true", "-1") } else { String::new() };
            assert_eq!(seen.line("grpc-retry-pushback-ms"), pushback);
        }
    }
}

#[tokio::test]
async fn a_status_in_trailers_has_its_claim_there() {
    // [wire-4]
    let Some(binary) = Envoy::binary("a_status_in_trailers") else { return };
    let filters = Filters::module("enforce");
    let chain = two(&binary, Protocol::GrpcTrailers, Retries::Istio, CONTEXT, &filters).await;
    for (plan, expected) in [
        (Plan::Ok, ""),
        (Plan::Own, "claimed;reason=own;origin=\"a\";hops=0"),
        // Envoy cannot retry what it has begun to hand on, so the retry is left to callers.
        (Plan::Dependency, "claimed;reason=handoff;origin=\"b\";hops=1"),
        (Plan::Swallowed, ""),
    ] {
        let seen = chain.send(1, &[("x-plan", &plan.name())]).await;
        assert_eq!(claim(&seen), expected, "{plan:?}");
    }
    assert_eq!(chain.handled(), [4, 3]);
}

#[tokio::test]
async fn lost_context_is_claimed_and_an_id_finds_it_again() {
    // [claim-2] [correlate-4]
    let Some(binary) = Envoy::binary("lost_context_is_claimed") else { return };
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const LOST: &str = "claimed;reason=context-lost;origin=\"a\";hops=0";
    const HANDOFF: &str = "claimed;reason=handoff;origin=\"b\";hops=1";
    for (hands_on, expected) in [
        (&[][..], LOST),
        (&["traceparent"], HANDOFF),
        (&["x-request-id"], HANDOFF),
        (&["tracestate"], HANDOFF),
    ] {
        let chain =
            two(&binary, Protocol::Http1, Retries::None, hands_on, &Filters::module("enforce"))
                .await;
        let plan = Plan::Dependency.name();
        let seen = chain.send(1, &[("x-plan", &plan), ("traceparent", TRACE)]).await;
        assert_eq!(claim(&seen), expected, "{hands_on:?}");
    }
}

#[tokio::test]
async fn concurrent_requests_of_one_trace_are_not_confused() {
    // [correlate-1] [correlate-4]
    let Some(binary) = Envoy::binary("concurrent_requests_of_one_trace") else { return };
    let filters = Filters::module("enforce");
    for (protocol, requests) in
        [(Protocol::Http1, 3_200), (Protocol::Http2, 800), (Protocol::Grpc, 800)]
    {
        many_of_one_trace(&binary, protocol, &filters, requests).await;
    }
}

/// Sends so many requests of one trace, 16 at a time, and compares each claim with the truth.
pub(super) async fn many_of_one_trace(
    binary: &Path,
    protocol: Protocol,
    filters: &Filters,
    requests: usize,
) {
    const AT_ONCE: usize = 16;
    let retries = if protocol == Protocol::Grpc { Retries::Istio } else { Retries::On5xx(1) };
    let chain = two(binary, protocol, retries, CONTEXT, filters).await;
    let to = chain.envoys[0].port("inbound");
    let client = Arc::new(Client::new(protocol));
    let mut tasks = JoinSet::new();
    for task in 0..AT_ONCE {
        let client = client.clone();
        tasks.spawn(async move {
            let mut errors = 0;
            for n in 0..requests / AT_ONCE {
                errors += usize::from(is_claimed_truly(&client, to, n * AT_ONCE + task).await);
            }
            errors
        });
    }
    let errors: usize = tasks.join_all().await.into_iter().sum();
    assert_eq!(errors, requests * 51 / 100);
}

/// Sends request number `n` of one trace, and holds its claim against the truth; whether it failed.
/// Own failures are 30 %, failures of the callee 30 %, independent of each other.
async fn is_claimed_truly(client: &Client, to: SocketAddr, n: usize) -> bool {
    let plan = match (n % 10 < 3, n / 10 % 10 < 3) {
        (true, true) => Plan::Both,
        (true, false) => Plan::Own,
        (false, true) => Plan::Dependency,
        (false, false) => Plan::Ok,
    };
    let expected = match plan {
        // Envoy may have retried it, or refused to as too many retries were under way.
        Plan::Both | Plan::Dependency => "unclaimed;reason=",
        Plan::Own => "claimed;reason=own;",
        Plan::Ok | Plan::Swallowed | Plan::Abandoned => "",
    };
    let mut headers = HeaderMap::new();
    headers.insert("x-plan", plan.name().parse().unwrap());
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    headers.insert(HeaderName::from_static("traceparent"), trace.parse().unwrap());
    let seen = client.send(to, &headers).await.unwrap();
    let claim = seen.line("onus-claim");
    let is_true = claim.starts_with(expected) && claim.is_empty() == expected.is_empty();
    assert!(is_true, "{plan:?} {:?}", seen.headers);
    !expected.is_empty()
}

#[tokio::test]
async fn claims_stay_true_while_the_configuration_changes() {
    // [correlate-1]
    let Some(binary) = Envoy::binary("claims_stay_true") else { return };
    changed_under_load(&binary, Filters::module).await;
}

/// A caller's listeners change under load; connections that are open keep the filters they have.
pub(super) async fn changed_under_load(binary: &Path, filters: fn(&'static str) -> Filters) {
    let dir = scratch();
    fs::create_dir_all(&dir).unwrap();
    let (file, new) = (dir.join("listeners.yaml"), dir.join("new"));
    let (caller, callee) = (
        App::planned_caller(Protocol::Http1, CONTEXT).await,
        App::planned_callee(Protocol::Http1).await,
    );
    let (unchanged, retries) = (filters("enforce"), Retries::None);
    let services = vec![Setup { app: callee, filters: unchanged, retries }];
    let callee = Chain::start(binary, Protocol::Http1, services).await;
    let put = |mode| {
        let sidecar = Sidecar {
            service: "caller",
            protocol: Protocol::Http1,
            app: caller.address,
            callee: ("a", callee.envoys[0].port("inbound")),
            retries: Retries::On5xx(1),
            filters: &filters(mode),
            old: Envoy::is_old(binary),
        };
        fs::write(&new, sidecar.watched_listeners()).unwrap();
        fs::rename(&new, &file).unwrap();
        sidecar.yaml_watching(&file)
    };
    let envoy = Envoy::start(binary, &put("enforce")).await;
    caller.call_through(envoy.port("outbound"));
    let (to, stopped) = (envoy.port("inbound"), Arc::new(AtomicBool::new(false)));
    let mut load = JoinSet::new();
    for task in 0..8 {
        let stopped = stopped.clone();
        load.spawn(async move {
            // Of two clients one keeps its connection, the other makes a new one each time.
            let (kept, mut n) = (Client::new(Protocol::Http1), task);
            while !stopped.load(Ordering::Relaxed) {
                let fresh = Client::new(Protocol::Http1);
                let client = if task % 2 == 0 { &kept } else { &fresh };
                is_claimed_truly(client, to, n).await;
                n += 8;
            }
        });
    }
    for (changes, mode) in ["enforce 100%", "enforce", "enforce 100%"].into_iter().enumerate() {
        put(mode);
        let updates =
            format!("listener_manager.listener_in_place_updated: {}\n", 2 * (changes + 1));
        until("the listeners have changed", async || {
            envoy.get("/stats?filter=in_place_updated").await.unwrap() == updates
        })
        .await;
        let handled = caller.handled();
        until("requests came after it", async || caller.handled() >= handled + 200).await;
    }
    stopped.store(true, Ordering::Relaxed);
    load.join_all().await;
    fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_dead_application_is_its_own_fault_and_a_dead_sidecar_its_caller_s_to_retry() {
    // [claim-3] [claim-8]
    let Some(binary) = Envoy::binary("a_dead_application") else { return };
    for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Grpc] {
        one_after_the_other_dies(&binary, protocol, &Filters::module("enforce")).await;
    }
}

/// The callee's application dies, then its Envoy, then the caller's application.
pub(super) async fn one_after_the_other_dies(binary: &Path, protocol: Protocol, filters: &Filters) {
    let retries = if protocol == Protocol::Grpc { Retries::Istio } else { Retries::On5xx(1) };
    let mut chain = two(binary, protocol, retries, CONTEXT, filters).await;
    let plan = Plan::Ok.name();
    let send = [("x-plan", plan.as_str())];
    assert!(!chain.send(1, &send).await.failed());
    chain.apps[1].stop();
    let seen = chain.send(1, &send).await;
    // The callee's Envoy claims the error that it makes itself, and is tried once more.
    assert_eq!(claim(&seen), "unclaimed;reason=not-configured;origin=\"b\";hops=1");
    chain.envoys.remove(1);
    // A connection that breaks under a call is no refused one, and not every policy retries it.
    until("the caller's Envoy has seen it go", async || {
        let connections = "/stats?filter=cluster.b.upstream_cx_active";
        chain.envoys[0].get(connections).await.unwrap().ends_with(": 0\n")
    })
    .await;
    let seen = chain.send(1, &send).await;
    // Where Envoy does not tell of its attempts, nobody else can. It tells plugins.
    let expected = if Envoy::is_old(binary) && *filters == Filters::module("enforce") {
        "claimed;kind=silent;reason=handoff;origin=\"b\";hops=1"
    } else {
        "unclaimed;reason=not-configured;origin=\"b\";hops=1"
    };
    assert_eq!(claim(&seen), expected, "{protocol:?} {seen:?}");
    chain.apps[0].stop();
    let seen = chain.send(1, &send).await;
    assert_eq!(claim(&seen), "claimed;reason=own;origin=\"a\";hops=0");
    assert!(chain.envoys[0].is_alive());
}
