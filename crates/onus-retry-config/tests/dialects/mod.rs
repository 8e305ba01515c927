//! One test for each thing that people configure retries of, by hand.

mod calls;

use std::time::Duration;

use onus_retry_config::{Attempts, Caller, Floor, Import};

use super::{check, read};

const ISTIO_DEFAULT: &str = "connect-failure,refused-stream,unavailable,cancelled";

#[test]
fn virtual_services() {
    let config = read(
        r#"
apiVersion: v1
kind: List
items:
- apiVersion: networking.istio.io/v1beta1
  kind: VirtualService
  metadata: {name: reviews, namespace: shop, managedFields: [{fieldsV1: {"f:retries": {}}}]}
  spec:
    hosts: [reviews]
    http:
    - match:
      - {method: {exact: GET}, uri: {prefix: /api}, sourceLabels: {app: productpage}}
      - {method: {exact: HEAD}, uri: {exact: /health}, sourceLabels: {app: productpage}}
      retries: {attempts: 4, perTryTimeout: 1.5s, retryOn: "5xx,503, retriable-status-codes"}
      timeout: 10s
      route:
      - destination: {host: reviews, subset: v1}
        weight: 90
      - destination: {host: reviews.blue.svc.cluster.local}
        weight: 10
      - destination: {host: reviews, subset: v2}
    - retries: {attempts: 3}
      route: [{destination: {host: reviews}}]
    - name: untouched
      route: [{destination: {host: reviews}}]
    - redirect: {uri: /elsewhere}
- apiVersion: networking.istio.io/v1
  kind: VirtualService
  metadata: {name: edge, namespace: shop}
  spec:
    hosts: [shop.example.com]
    gateways: [istio-system/public]
    http:
    - match: [{method: {regex: "GET|POST"}}]
      retries: {attempts: 1, retryOn: gateway-error}
      route: [{destination: {host: web.shop.svc.cluster.local}}]
"#,
    );
    let first = r#"/api* /health["GET", "HEAD"]: 5 on 5xx,503; 1.5s a try; 10s in all"#;
    check(
        &config,
        &[
            &format!("productpage.shop -> reviews.blue {first}"),
            &format!("productpage.shop -> reviews.blue {first}"),
            &format!("productpage.shop -> reviews.shop {first}"),
            &format!("productpage.shop -> reviews.shop {first}"),
            &format!("anyone -> reviews.shop any[]: 4 on {ISTIO_DEFAULT}"),
            &format!("anyone -> reviews.shop untouched[]: 3 on {ISTIO_DEFAULT}; by default"),
            "gateways -> web.shop any[]: 2 on gateway-error",
        ],
        &[],
    );
    assert_eq!(
        config.policies[4].place.to_string(),
        "a.yaml:22: VirtualService shop/reviews spec.http[1].retries"
    );
}

#[test]
fn the_mesh_of_istio_has_its_own_default() {
    let config = read(
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data:
  mesh: |-
    accessLogFile: /dev/stdout
    defaultHttpRetryPolicy:
      attempts: 1
      retryOn: connect-failure,503
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a}
spec:
  hosts: [a]
  http: [{route: [{destination: {host: a}}]}, {retries: {attempts: 5}, route: [{destination: {host: a}}]}]
"#,
    );
    check(
        &config,
        &[
            "anyone -> a any[]: 2 on connect-failure,503; by default",
            "anyone -> a any[]: 6 on connect-failure,503",
        ],
        &[],
    );
    let default = config.istio_default.expect("it is of Istio");
    assert_eq!(default.attempts, Attempts::AtMost(2));
    assert_eq!(default.place.line, 9);
}

#[test]
fn destination_rules_hold_back_all_callers() {
    let config = read(
        r#"
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a, namespace: shop}
spec:
  host: a
  trafficPolicy:
    connectionPool: {http: {maxRetries: 10}}
    retryBudget: {percent: 10.5, minRetryConcurrency: 5, budgetInterval: 2s}
  subsets:
  - name: v1
    trafficPolicy: {retryBudget: {}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a, namespace: shop}
spec:
  hosts: [a]
  http: [{retries: {attempts: 2, retryOn: 5xx}, route: [{destination: {host: a}}]}]
"#,
    );
    check(
        &config,
        // The loosest, as nobody knows which subset is called.
        &["anyone -> a.shop any[]: 3 on 5xx; 20 % of those in flight, at least 3 at once"],
        &["a.yaml:8: DestinationRule shop/a spec.trafficPolicy.connectionPool.http.maxRetries: \
           a limit of retries at once, whatever the traffic"],
    );
    let budgets: Vec<_> = config.budgets.iter().map(|it| it.budget.to_string()).collect();
    assert_eq!(
        budgets,
        ["10.5 % in 2 s, at least 5 at once", "20 % of those in flight, at least 3 at once"]
    );
}

#[test]
fn routes_and_backends_of_the_gateway_api() {
    let config = read(
        r#"
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: checkout, namespace: shop}
spec:
  parentRefs: [{kind: Service, group: "", name: checkout}]
  rules:
  - matches: [{method: POST, path: {type: Exact, value: /order}}]
    retry: {codes: [500, 502], attempts: 2, backoff: 100ms}
    timeouts: {request: 10s, backendRequest: 2s}
    backendRefs: [{name: checkout-v1}, {name: checkout-v2, namespace: blue}]
  - retry: {codes: [503]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: ledger, namespace: shop}
spec:
  parentRefs: [{name: public}]
  rules:
  - matches: [{method: {service: shop.Ledger, method: Book}}]
    retry: {attempts: 1}
    backendRefs: [{name: ledger}]
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: checkout, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: checkout-v1}]
  retryConstraint:
    budget: {percent: 25, interval: 5s}
    minRetryRate: {count: 20, interval: 2s}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: ledger, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: ledger}]
  retryConstraint: {}
"#,
    );
    let post = r#"/order["POST"]: 3 on 500,502; 2s a try; 10s in all"#;
    check(
        &config,
        &[
            &format!("anyone -> checkout-v1.shop {post}; 25 % in 5 s, at least 10/s"),
            &format!("anyone -> checkout-v2.blue {post}"),
            "anyone -> checkout.shop any[]: 2 on 503",
            "gateways -> ledger.shop shop.Ledger/Book[]: 2 on ; 20 % in 10 s, at least 10/s",
        ],
        &["a.yaml:12: HTTPRoute shop/checkout spec.rules[1].retry: without `attempts` the \
           implementation chooses; taken for one retry"],
    );
    assert_eq!(config.policies[0].repeated_writes(), ["POST"]);
    assert_eq!(config.policies[3].repeated_writes(), ["shop.Ledger/Book"]);
}

#[test]
fn policies_of_envoy_gateway_are_attached_to_routes_and_gateways() {
    let config = read(
        r#"
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: of-gateway, namespace: edge}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public}]
  retry: {numRetries: 4, retryOn: {triggers: [5xx, sometimes]}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: of-route, namespace: shop}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}
  timeout: {http: {requestTimeout: 3s}}
  retry: {perRetry: {timeout: 1s, backoff: {baseInterval: 10ms, maxInterval: 1s}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: shop}
spec:
  parentRefs: [{name: public, namespace: edge}]
  rules: [{backendRefs: [{name: cart}]}, {retry: {attempts: 1, codes: [504]}, backendRefs: [{name: cart}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: public, namespace: edge}]
  rules: [{backendRefs: [{name: web}]}]
"#,
    );
    check(
        &config,
        &[
            "gateways -> cart.shop any[]: 2 on 504",
            &format!("gateways -> cart.shop any[]: 3 on {ISTIO_DEFAULT},503; 1s a try; 3s in all"),
            "gateways -> web.shop any[]: 5 on 5xx,sometimes",
        ],
        &["a.yaml:7: BackendTrafficPolicy edge/of-gateway spec.retry.retryOn.triggers[1]: the \
           condition `sometimes` is not known; taken for every failure"],
    );
}

#[test]
fn annotations_and_profiles_of_linkerd() {
    let config = read(
        r#"
apiVersion: v1
kind: Service
metadata:
  name: cart
  namespace: shop
  annotations:
    retry.linkerd.io/http: 5xx,429,500-504
    retry.linkerd.io/grpc: unavailable
    retry.linkerd.io/limit: "2"
    retry.linkerd.io/timeout: 400ms
    timeout.linkerd.io/request: 2s
---
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: shop}
---
apiVersion: policy.linkerd.io/v1beta3
kind: HTTPRoute
metadata: {name: stock, namespace: shop, annotations: {retry.linkerd.io/http: gateway-error}}
spec:
  parentRefs: [{kind: Service, name: stock}]
  rules: [{matches: [{method: GET}], backendRefs: [{name: stock-v1}]}]
---
apiVersion: v1
kind: Service
metadata: {name: old, namespace: shop, annotations: {retry.linkerd.io/http: 5xx}}
---
apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {name: old.shop.svc.cluster.local, namespace: shop}
spec:
  routes:
  - {name: POST /order, condition: {method: POST, pathRegex: /order}, isRetryable: true, timeout: 1s}
  - {name: GET /order, condition: {method: GET, pathRegex: /order}}
"#,
    );
    check(
        &config,
        &[
            "anyone -> cart.shop any[]: 3 on 5xx,429,500-504,unavailable; 400ms a try; 2s in all",
            r#"anyone -> stock.shop any["GET"]: 2 on gateway-error"#,
            "anyone -> old.shop POST /order[\"POST\"]: while the budget pays on 5xx,unavailable; \
             1s in all; 20 % in 10 s, at least 10/s",
        ],
        &[],
    );
    assert_eq!(config.policies[2].repeated_writes(), ["POST"]);
    assert_eq!(config.passed_over["Service"], 1);
}

#[test]
fn routes_and_clusters_in_a_dump_of_envoy() {
    let config = read(
        r#"{"configs": [
  {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump", "static_clusters": [
    {"cluster": {"name": "outbound|80||a.shop.svc.cluster.local", "circuit_breakers": {"thresholds": [
      {"max_retries": 3, "retry_budget": {"budget_percent": {"value": 12.5}, "min_retry_concurrency": 1}}]}}}]},
  {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump", "dynamic_route_configs": [
    {"route_config": {"name": "80", "virtual_hosts": [
      {"name": "a", "domains": ["a"], "retry_policy": {"retry_on": "5xx"}, "routes": [
        {"match": {"prefix": "/", "headers": [{"name": ":method", "string_match": {"exact": "PUT"}}]},
         "route": {"cluster": "outbound|80||a.shop.svc.cluster.local", "timeout": "0s"}},
        {"match": {"path": "/b"}, "route": {"weighted_clusters": {"clusters": [{"name": "b1"}, {"name": "b2"}]},
         "timeout": "15s", "retry_policy": {"retry_on": "retriable-status-codes", "num_retries": 2,
         "retriable_status_codes": [500, 503], "per_try_timeout": "1.5s", "moods": []}}},
        {"match": {"prefix": "/"}, "redirect": {}},
        {"match": {"prefix": "/"}, "route": {"cluster_header": "x-cluster"}}]},
      {"name": "inbound", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route":
        {"cluster": "inbound|8080||", "retry_policy": {"retry_on": "reset-before-request", "num_retries": 2}}}]}]}}]}]}"#,
    );
    check(
        &config,
        &[
            r#"anyone -> a.shop /*["PUT"]: 2 on 5xx; 12.5 % of those in flight, at least 1 at once"#,
            "anyone -> b1 /b[]: 3 on 500,503; 1.5s a try; 15s in all",
            "anyone -> b2 /b[]: 3 on 500,503; 1.5s a try; 15s in all",
        ],
        &[
            "a.yaml:12: routes 80 virtual_hosts[0].routes[1].route.retry_policy.moods: a field that \
             is not known; skipped",
            "a.yaml:14: routes 80 virtual_hosts[0].routes[3].route: a cluster that is chosen for \
             each request",
        ],
    );
    assert_eq!(config.passed_over["inbound route"], 1);
}

#[test]
fn service_configs_of_grpc() {
    let config = read(
        r#"{
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
  "methodConfig": [
    {"name": [{"service": "shop.Cart", "method": "GetCart"}, {"service": "shop.Cart", "method": "AddItem"}],
     "timeout": "2s",
     "retryPolicy": {"maxAttempts": 9, "initialBackoff": "0.1s", "maxBackoff": "1s",
                     "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", 13, "BROKEN"]}},
    {"name": [{}], "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE"]}},
    {"name": [{"service": "shop.Stock"}], "retryPolicy": {"retryableStatusCodes": ["UNAVAILABLE"]}},
    {"name": [{"service": "shop.Mail"}], "waitForReady": true}
  ]
}"#,
    );
    let budget = "10 % of successes, at least 5 at once";
    check(
        &config,
        &[
            &format!(
                "anyone -> shop.Cart GetCart and 1 more[]: 5 on unavailable,13,BROKEN; 2s in all; {budget}"
            ),
            &format!("anyone -> * any[]: 3 on unavailable; {budget}"),
        ],
        &[
            "a.yaml:7: methodConfig[0].retryPolicy.retryableStatusCodes[1]: the condition `13` is \
             not known; taken for every failure",
            "a.yaml:7: methodConfig[0].retryPolicy.retryableStatusCodes[2]: the condition `BROKEN` \
             is not known; taken for every failure",
            "a.yaml:8: methodConfig[1].hedgingPolicy: hedging sends more attempts than failures; \
             they are taken for retries",
            "a.yaml:9: methodConfig[2].retryPolicy: `maxAttempts` is missing; skipped",
        ],
    );
    assert_eq!(config.policies[0].repeated_writes(), ["shop.Cart/AddItem"]);
    let budget = config.policies[0].budget.expect("there is a throttle");
    assert_eq!((budget.requests_per_call(), budget.floor), (1.0, Some(Floor::AtOnce(5))));
    let backoff = config.policies[0].backoff.expect("it waits");
    assert_eq!(backoff.max, Some(Duration::from_secs(1)));
}

#[test]
fn a_proxy_of_contour() {
    let config = read(
        r#"
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: shop, namespace: edge}
spec:
  routes:
  - conditions: [{prefix: /api}]
    services: [{name: api, port: 80}, {name: api-canary, port: 80}]
    retryPolicy: {retryOn: [gateway-error, retriable-status-codes], retriableStatusCodes: [425]}
  - services: [{name: web, port: 80}]
"#,
    );
    check(
        &config,
        &[
            "gateways -> api.edge /api*[]: 2 on gateway-error,425",
            "gateways -> api-canary.edge /api*[]: 2 on gateway-error,425",
        ],
        &[],
    );
    assert_eq!(config.policies[0].caller, Caller::Gateway);
}

#[test]
fn what_belongs_together_may_be_in_several_files() {
    let mut import = Import::default();
    import.read(
        "budget.yaml",
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a, namespace: x}\n\
         spec: {host: '*.x.svc.cluster.local', trafficPolicy: {retryBudget: {percent: 5}}}\n",
    );
    import.read(
        "route.json",
        r#"{"apiVersion": "networking.istio.io/v1", "kind": "VirtualServiceList", "items": [
            {"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
             "metadata": {"name": "a", "namespace": "x"}, "spec": {"hosts": ["a"], "http": [
               {"retries": {"attempts": 1, "retryOn": "5xx"}, "route": [{"destination": {"host": "a"}}]}]}}]}"#,
    );
    check(
        &import.finish(),
        &["anyone -> a.x any[]: 2 on 5xx; 5 % of those in flight, at least 3 at once"],
        &[],
    );
}

#[test]
fn what_has_no_retries_in_it_is_counted() {
    let config = read(
        r#"
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a}
spec: {tcp: [{route: [{destination: {host: a}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a}
spec: {host: a, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: a}
spec: {rules: [{backendRefs: [{name: a}]}, {backendRefs: [{name: b}]}]}
---
apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {name: a.shop.svc.cluster.local}
spec: {routes: [{name: a, condition: {method: GET}}]}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: a}
spec: {routes: [{services: [{name: a}]}]}
---
methodConfig: [{name: [{service: a}], timeout: 1s}]
"#,
    );
    check(&config, &[], &[]);
    let passed: Vec<_> =
        config.passed_over.iter().map(|(what, count)| format!("{count} {what}")).collect();
    assert_eq!(
        passed,
        [
            "1 DestinationRule without retries",
            "1 HTTPProxy without retries",
            "1 VirtualService without HTTP",
            "1 methodConfig without retries",
            "1 route of ServiceProfile without retries",
            "2 rule of HTTPRoute without retries of its own",
        ]
    );
}
