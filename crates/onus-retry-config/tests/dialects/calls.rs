//! What a call has to be for a policy to be meant for it.

use onus_retry_config::{Match, Path};

use crate::read;

#[test]
fn what_a_call_has_to_be() {
    let config = read(
        r#"
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a, namespace: shop}
spec:
  hosts: [a]
  http:
  - match: [{uri: {exact: /pay}, method: {exact: POST}}, {uri: {prefix: /api}, headers: {beta: {exact: "1"}}}]
    retries: {attempts: 2}
    route: [{destination: {host: a, port: {number: 9080}}}]
  - match: [{uri: {regex: "/v[0-9]+"}, sourceLabels: {app: web, version: v2}}, {sourceLabels: {app: b}}]
    retries: {attempts: 2}
    route: [{destination: {host: b}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: c, namespace: shop}
spec:
  parentRefs: [{kind: Service, name: c}]
  rules:
  - matches: [{path: {value: /v2}}, {path: {type: Exact, value: /x}, method: GET, queryParams: []}]
    retry: {attempts: 1}
    backendRefs: [{name: c, port: 8080}]
---
apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {name: d.shop.svc.cluster.local, namespace: shop}
spec:
  routes:
  - {name: one, isRetryable: true, condition: {method: GET, pathRegex: '^/books\.json$'}}
  - {name: many, isRetryable: true, condition: {pathRegex: '/books/[^/]*'}}
---
virtual_hosts:
- name: e
  routes:
  - match: {path_separated_prefix: /f, headers: [{name: ":method", string_match: {exact: GET}}, {name: x}]}
    route: {cluster: outbound|80||e.shop.svc.cluster.local, retry_policy: {retry_on: 5xx}}
"#,
    );
    let found: Vec<_> = config
        .policies
        .iter()
        .filter(|policy| !policy.by_default)
        .map(|policy| {
            let port = policy.port.map_or_else(|| "-".to_owned(), |port| port.to_string());
            format!("{} {port} {:?}", policy.callee, policy.route.matches)
        })
        .collect();
    let call = |method: Option<&str>, path: Option<Path>, also: &[&str]| Match {
        method: method.map(str::to_owned),
        path,
        also: also.iter().map(|&it| it.to_owned()).collect(),
    };
    let exact = |path: &str| Some(Path::Exact(path.to_owned()));
    let segments = |path: &str| Some(Path::Segments(path.to_owned()));
    let prefix = |path: &str| Some(Path::Prefix(path.to_owned()));
    let pattern = |path: &str| Some(Path::Pattern(path.to_owned()));
    let of_two = [
        call(None, pattern("/v[0-9]+"), &["sourceLabels", "sourceLabels"]),
        call(None, None, &["sourceLabels"]),
    ];
    let expected = [
        ("e.shop 80", vec![call(Some("GET"), segments("/f"), &["headers"])]),
        (
            "a.shop 9080",
            vec![call(Some("POST"), exact("/pay"), &[]), call(None, prefix("/api"), &["headers"])],
        ),
        ("b.shop -", of_two.to_vec()),
        ("b.shop -", of_two.to_vec()),
        (
            "c.shop 8080",
            vec![
                call(None, segments("/v2"), &[]),
                call(Some("GET"), exact("/x"), &["queryParams"]),
            ],
        ),
        ("d.shop -", vec![call(Some("GET"), exact("/books.json"), &[])]),
        ("d.shop -", vec![call(None, pattern("/books/[^/]*"), &[])]),
    ];
    for (callee, matches) in expected {
        let line = format!("{callee} {matches:?}");
        assert!(found.contains(&line), "{line}\nis not in\n{}", found.join("\n"));
    }
}
