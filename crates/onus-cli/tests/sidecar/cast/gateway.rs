//! Envoy as meshes and gateways configure it.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// An Envoy in front of these instances, which retries reads as Istio does without being asked, and
/// where a connection breaks; and writes where there is no connection.
pub(crate) fn in_front_of(instances: &[SocketAddr]) -> String {
    let mut endpoints = String::new();
    for instance in instances {
        let (ip, port) = (instance.ip(), instance.port());
        let address = format!("{{socket_address: {{address: {ip}, port_value: {port}}}}}");
        writeln!(endpoints, "        - endpoint: {{address: {address}}}").expect("a text grows");
    }
    CONFIG.replace("ENDPOINTS\n", &endpoints)
}

const CONFIG: &str = r#"
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: inbound
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: inbound
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: "/", headers: [{name: ":method", string_match: {exact: GET}}]}
                route:
                  cluster: peer
                  retry_policy:
                    retry_on: connect-failure,refused-stream,unavailable,cancelled,reset,retriable-status-codes
                    retriable_status_codes: [503]
                    num_retries: 2
                    host_selection_retry_max_attempts: "5"
                    retry_host_predicate:
                    - name: envoy.retry_host_predicates.previous_hosts
                      typed_config:
                        "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
              - match: {prefix: "/"}
                route:
                  cluster: peer
                  retry_policy:
                    retry_on: connect-failure
                    num_retries: 2
                    host_selection_retry_max_attempts: "5"
                    retry_host_predicate:
                    - name: envoy.retry_host_predicates.previous_hosts
                      typed_config:
                        "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: peer
    type: STATIC
    connect_timeout: 1s
    circuit_breakers: {thresholds: [{max_connections: 65535, max_pending_requests: 65535, max_requests: 65535, max_retries: 65535}]}
    load_assignment:
      cluster_name: peer
      endpoints:
      - lb_endpoints:
ENDPOINTS
"#;
