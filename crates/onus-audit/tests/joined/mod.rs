//! What sources say of one edge, together.

use onus_audit::{About, Audit, Evidence, Metrics, RetriesFrom, audit};
use onus_graph::{EdgeList, ListFormat};
use onus_retry_config::RetryConfig;
use onus_traces::{Format, Import, Limits, Reading};

use super::{config, lines, metrics};

fn virtual_service(host: &str, retries: &str) -> String {
    format!(
        "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {host}, \
         namespace: shop}}\nspec: {{hosts: [{host}], http: [{{retries: {{{retries}}}, route: \
         [{{destination: {{host: {host}}}}}]}}]}}\n"
    )
}

/// A chain of calls as Istio's sidecars have counted them.
fn chain(names: &[&str], protocol: &str) -> Metrics {
    let rows: Vec<String> = names
        .windows(2)
        .map(|pair| {
            let [from, to] = [pair[0], pair[1]];
            format!(
                "reporter=source,source_canonical_service={from},source_workload_namespace=shop,\
                 destination_canonical_service={to},destination_workload_namespace=shop,\
                 destination_service_name={to},destination_service_namespace=shop,\
                 request_protocol={protocol}"
            )
        })
        .collect();
    let series: Vec<_> = rows.iter().map(|labels| (labels.as_str(), 1000.0)).collect();
    metrics(&[(About::IstioRequests, &series)])
}

fn joined(config: &RetryConfig, metrics: &Metrics) -> Audit {
    audit(&Evidence { config, traces: None, metrics: Some(metrics), listed: &[] })
}

fn attempts(audit: &Audit, callee: &str) -> (u32, RetriesFrom, bool) {
    let edge = audit.storms.edges.iter().find(|edge| edge.facts.callee == callee);
    let retries = &edge.expect("there is such an edge").facts.retries;
    (retries.attempts, retries.from, retries.connections_only)
}

#[test]
fn retries_of_connections_do_not_climb() {
    use RetriesFrom::{Configuration, MeshDefault};
    for (protocol, retries, expected) in [
        ("http", "attempts: 2, retryOn: 5xx", (3, Configuration, false)),
        (
            "http",
            "attempts: 2, retryOn: 'connect-failure,refused-stream'",
            (1, Configuration, true),
        ),
        ("http", "attempts: 2, retryOn: unavailable", (1, Configuration, true)),
        ("grpc", "attempts: 2, retryOn: unavailable", (3, Configuration, false)),
        ("grpc", "attempts: 2, retryOn: 5xx", (1, Configuration, true)),
        ("grpc", "attempts: 0", (1, Configuration, false)),
    ] {
        let audit = joined(&config(&virtual_service("b", retries)), &chain(&["a", "b"], protocol));
        assert_eq!(attempts(&audit, "b"), expected, "{protocol} {retries}");
    }
    // An edge that nobody configured.
    for (protocol, expected) in
        [("grpc", (3, MeshDefault, false)), ("http", (1, MeshDefault, true))]
    {
        let audit = joined(&RetryConfig::default(), &chain(&["a", "b"], protocol));
        assert_eq!(attempts(&audit, "b"), expected, "{protocol}");
    }
}

#[test]
fn what_a_client_does_and_what_stands_beside_it_multiply() {
    let mesh = virtual_service("cart-service", "attempts: 2, retryOn: 'unavailable,5xx'");
    for (service, protocol, expected) in [
        (r#"{"service": "shop.v1.CartService"}"#, "grpc", 12),
        (r#"{"service": "shop.v1.Cart"}"#, "grpc", 12),
        ("{}", "grpc", 12),
        // Others, and calls that are no gRPC, are not the client's.
        (r#"{"service": "shop.v1.Carton"}"#, "grpc", 3),
        (r#"{"service": "shop.v1.Cart"}"#, "http", 3),
        ("{}", "http", 3),
    ] {
        let client = format!(
            r#"{{"methodConfig": [{{"name": [{service}], "retryPolicy": {{"maxAttempts": 4,
                 "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
                 "retryableStatusCodes": ["UNAVAILABLE"]}}}}]}}"#
        );
        let config = config(&format!("{mesh}---\n{client}\n"));
        let audit = joined(&config, &chain(&["a", "cart-service"], protocol));
        assert_eq!(attempts(&audit, "cart-service").0, expected, "{service} {protocol}");
    }
}

#[test]
fn a_budget_also_binds_what_nobody_configured_for_its_callee() {
    let budget = "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: \
                  b, namespace: shop}\nspec: {host: b, trafficPolicy: {retryBudget: {percent: 25}}}\n";
    let everywhere = virtual_service("'*'", "attempts: 4, retryOn: unavailable");
    for (yaml, attempts) in [(budget.to_owned(), 3), (format!("{budget}{everywhere}"), 5)] {
        let audit = joined(&config(&yaml), &chain(&["a", "b"], "grpc"));
        let retries = &audit.storms.edges[0].facts.retries;
        let percent = retries.budget.map(|budget| budget.percent);
        assert_eq!((retries.attempts, percent), (attempts, Some(25.0)), "{yaml}");
        assert_eq!(audit.summary.without_budget, 0, "{yaml}");
    }
    let other = joined(&config(budget), &chain(&["a", "c"], "grpc"));
    assert_eq!(other.storms.edges[0].facts.retries.budget, None);
}

#[test]
fn the_route_with_most_attempts_counts_and_budgets_bind() {
    let routes = virtual_service("b", "attempts: 1, retryOn: 5xx")
        + &virtual_service("b", "attempts: 4, retryOn: 5xx")
        + &virtual_service("c", "attempts: 2, retryOn: 5xx")
        + "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: b, \
           namespace: shop}\nspec: {host: b, trafficPolicy: {retryBudget: {percent: 20, \
           budgetInterval: 10s}}}\n";
    let audit = joined(&config(&routes), &chain(&["a", "b", "c"], "http"));
    assert_eq!(attempts(&audit, "b").0, 5);
    let api = &audit.storms.apis[0];
    assert_eq!((api.radius, api.amplification, api.at_culprit), (2, 15.0, (15.0, 3.0)));
    assert!((api.amplification_budgeted - 1.2 * 3.0).abs() < 1e-9, "{api:?}");
    assert_eq!(api.path, ["a", "b", "c"]);
    assert_eq!((audit.summary.retrying_edges, audit.summary.without_budget), (2, 1));
}

#[test]
fn a_policy_is_for_what_is_called_whatever_answers() {
    let config = config(&virtual_service("cart", "attempts: 2, retryOn: 5xx"));
    let row = |from: &str, to: &str, called: &str| {
        format!(
            "reporter=source,source_canonical_service={from},source_workload_namespace=shop,\
             destination_canonical_service={to},destination_workload_namespace=shop,\
             destination_service_name={called},destination_service_namespace=shop,\
             request_protocol=http"
        )
    };
    let rows = [row("web", "cart-api", "cart"), row("cart-api", "db", "db")];
    let series = rows.each_ref().map(|labels| (labels.as_str(), 1000.0));
    let audit = joined(&config, &metrics(&[(About::IstioRequests, &series)]));
    assert_eq!(attempts(&audit, "cart-api"), (3, RetriesFrom::Configuration, false));
    assert_eq!(audit.summary.policies_without_edge, 0);
    assert_eq!(audit.storms.apis[0].service, "web");
}

#[test]
fn policies_of_gateways_are_for_gateways() {
    let gateway = virtual_service("b", "attempts: 2, retryOn: 5xx")
        .replace("spec: {hosts", "spec: {gateways: [public], hosts");
    let config = config(&gateway);
    for (caller, expected) in [("istio-ingressgateway", 3), ("a", 1)] {
        let audit = joined(&config, &chain(&[caller, "b"], "http"));
        assert_eq!(attempts(&audit, "b").0, expected, "{caller}");
    }
    let nobody = joined(&config, &chain(&["a", "other"], "http"));
    assert_eq!(nobody.summary.policies_without_edge, 1);
}

/// `shop` calls `b`, which fails in all of these and takes nobody down.
fn survived(requests: usize) -> onus_traces::Report {
    let trace = |index: usize| {
        format!(
            r#"[{{"traceId": "5af7183fb1d4c{index:03x}", "id": "6b221d5bc9e6496c", "kind": "SERVER",
                 "localEndpoint": {{"serviceName": "a"}}, "tags": {{}}}},
                {{"traceId": "5af7183fb1d4c{index:03x}", "id": "352bff9a74ca9ad2",
                 "parentId": "6b221d5bc9e6496c", "kind": "CLIENT",
                 "localEndpoint": {{"serviceName": "a"}}, "remoteEndpoint": {{"serviceName": "b"}},
                 "tags": {{"error": "timeout"}}}}]"#
        )
    };
    let traces: Vec<_> = (0..requests).map(trace).collect();
    let mut import = Import::new(Limits::default());
    import.read("traces.json", format!("[{}]", traces.join(",")).as_bytes(), Format::Detect);
    import.report(Reading::default())
}

#[test]
fn traces_say_where_a_storm_ends() {
    let config = config(&virtual_service("b", "attempts: 2, retryOn: 5xx"));
    let metrics = chain(&["root", "a", "b"], "http");
    let config = RetryConfig {
        policies: [config.policies.clone(), {
            let mut of_a = config.policies.clone();
            of_a[0].callee.name = "a".to_owned();
            of_a
        }]
        .concat(),
        ..config
    };
    let without = joined(&config, &metrics);
    assert_eq!((without.storms.apis[0].radius, without.storms.apis[0].amplification), (2, 9.0));
    let traces = survived(20);
    let with = audit(&Evidence {
        config: &config,
        traces: Some(&traces),
        metrics: Some(&metrics),
        listed: &[],
    });
    let lines = lines(&with);
    assert_eq!(
        lines[0],
        "a -> b: 1000 calls, 0 failed, - seen, fail-open, 3 attempts by configuration"
    );
    // `a` survives `b`, so nobody above it retries for it.
    let api = &with.storms.apis[0];
    assert_eq!((api.radius, api.amplification), (1, 3.0));
    assert_eq!(with.summary.classified, 1);
    let load = |callee: &str| {
        with.storms.edges.iter().find(|edge| edge.facts.callee == callee).map(|edge| edge.load)
    };
    assert_eq!((load("b"), load("a")), (Some(3.0), Some(3.0)));
}

#[test]
fn traces_alone_are_a_mesh() {
    let config = config(&virtual_service("b", "attempts: 2, retryOn: 5xx"));
    let traces = survived(3);
    let audit =
        audit(&Evidence { config: &config, traces: Some(&traces), metrics: None, listed: &[] });
    // Three failures prove nothing.
    assert_eq!(
        lines(&audit),
        ["a -> b: 3 calls, 1 failed, - seen, unknown, 3 attempts by configuration"]
    );
}

#[test]
fn a_list_of_edges_is_a_mesh() {
    let routes = ["a", "b"].map(|host| virtual_service(host, "attempts: 2, retryOn: 5xx"));
    let list = EdgeList::read("caller,callee,calls\nroot,a,5\na,b,7\nb,b,1\n", ListFormat::Csv);
    let audit = audit(&Evidence {
        config: &config(&routes.concat()),
        traces: None,
        metrics: None,
        listed: &list.edges,
    });
    assert_eq!((audit.summary.edges, audit.summary.retrying_edges), (2, 2));
    let api = &audit.storms.apis[0];
    assert_eq!((api.service.as_str(), api.radius, api.amplification), ("root", 2, 9.0));
}

#[test]
fn nothing_is_a_mesh_without_edges() {
    let audit = audit(&Evidence {
        config: &RetryConfig::default(),
        traces: None,
        metrics: None,
        listed: &[],
    });
    assert_eq!(audit.summary.edges, 0);
    let advice = "who calls whom is not known: give --prom, --traces or --graph for radius and amplification";
    assert_eq!(audit.notes, [advice]);
}

#[test]
fn the_way_to_ownership_is_from_the_culprit_up() {
    let config = config(
        &["b", "c", "d"].map(|host| virtual_service(host, "attempts: 1, retryOn: 5xx")).concat(),
    );
    let audit = joined(&config, &chain(&["a", "b", "c", "d"], "http"));
    let gains: Vec<_> = audit
        .storms
        .gains
        .iter()
        .map(|gain| (gain.change.as_str(), gain.radius, gain.amplification))
        .collect();
    assert_eq!(
        gains,
        [
            ("ownership enforced in c", 3, 8.0),
            ("and in b", 2, 4.0),
            ("and in a", 1, 2.0),
            ("or, without ownership, a tight budget for a to b", 2, 4.0),
        ]
    );
}
