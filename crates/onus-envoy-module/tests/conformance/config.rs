//! One Envoy for the services of all trees. Their inbound listeners are sockets in a folder, so that
//! the clusters that lead to them can be named before Envoy has started.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use onus_conformance::TreeVector;
use onus_conformance::step::ModeName;
use onus_conformance::tree::{Node, RetriesBy, TreeEdge};
use onus_core::EdgeClass;
use serde_json::{Value, json};

use super::cutter::{self, Cutter};

/// Which callee a call is for.
pub(super) const CALLEE: &str = "x-callee";
/// Which application a request is for.
pub(super) const NODE: &str = "x-node";

/// The name of a node's service, its outbound listener and the cluster that leads to it: unique
/// among all trees.
pub(super) fn node(vector: &TreeVector, name: &str) -> String {
    format!("{}/{name}", vector.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
}

/// The configuration for these trees. Where answers get lost, what loses them is started.
pub(super) fn of_trees<'a>(
    trees: impl Iterator<Item = &'a TreeVector>,
    applications: SocketAddr,
    dir: &Path,
) -> Value {
    let mut clusters = vec![cluster("applications", &tcp(applications.port()))];
    let (mut listeners, mut roots) = (Vec::new(), Vec::new());
    for (tree, vector) in trees.enumerate() {
        let root = node(vector, vector.root().unwrap());
        roots.push(route(&root, &Value::Null));
        for (place, (name, callees)) in vector.calls().into_iter().enumerate() {
            let id = node(vector, name);
            let path = dir.join(format!("{tree}.{place}"));
            let socket = json!({"pipe": {"path": path}});
            if cutter::cuts(vector, name) {
                let before = dir.join(format!("{tree}.{place}.cut"));
                clusters.push(cluster(&id, &json!({"pipe": {"path": before}})));
                Cutter::start(before, path, vector, name);
            } else {
                clusters.push(cluster(&id, &socket));
            }
            let service = Service::new(vector, name, &callees, dir);
            let to_application = json!({
                "match": {"prefix": "/"},
                "route": {"cluster": "applications"},
                "request_headers_to_add": [{"header": {"key": NODE, "value": id}}],
            });
            let inbound = service.filter("inbound");
            let name_of_inbound = format!("{id}/inbound");
            let router = json!([]);
            listeners.push(listener(
                &name_of_inbound,
                &socket,
                &[to_application],
                inbound,
                &router,
            ));
            let edge = |to: &&str| {
                let edge = vector.edge(name, to);
                route(&node(vector, to), &retry_policy(&service.node, &edge))
            };
            let routes: Vec<_> = callees.iter().map(edge).collect();
            listeners.push(listener(
                &id,
                &tcp(0),
                &routes,
                service.filter("outbound"),
                &service.attempts(),
            ));
        }
    }
    listeners.push(listener("clients", &tcp(0), &roots, None, &json!([])));
    json!({
        "admin": {"address": tcp(0)},
        "static_resources": {"listeners": listeners, "clusters": clusters},
    })
}

/// A service, and what its filters are told.
struct Service {
    node: Node,
    config: Value,
}

impl Service {
    fn new(vector: &TreeVector, name: &str, callees: &[&str], dir: &Path) -> Self {
        let (id, own) = (node(vector, name), vector.node(name));
        let said = |to: &&str| (node(vector, to), callee(&own, &vector.edge(name, to)));
        let callees: serde_json::Map<_, _> = callees.iter().map(said).collect();
        let mut config = json!({
            "service": id,
            "mode": match own.mode {
                ModeName::Off => "off",
                ModeName::Observe => "observe",
                ModeName::Enforce => "enforce",
            },
            "silent-claims": own.silent_claims,
            "callees": callees,
        });
        if own.shield {
            let file = dir.join("shield");
            fs::write(&file, "shield: on\n").unwrap();
            config["switch-file"] = json!(file);
        }
        Self { node: own, config }
    }

    fn filter(&self, name: &str) -> Option<Value> {
        self.node.onus.then(|| {
            json!({"name": "onus", "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
                "dynamic_module_config": {"name": "onus_envoy_module", "do_not_close": true},
                "filter_name": name,
                "filter_config": {"@type": "type.googleapis.com/google.protobuf.Struct", "value": self.config},
            }})
        })
    }

    /// The filters of attempts, where limits on retries are Onus's.
    fn attempts(&self) -> Value {
        let watched = self.node.retries == RetriesBy::Onus;
        let Some(filter) = self.filter("attempt").filter(|_| watched) else { return json!([]) };
        let codec = json!({"name": "envoy.filters.http.upstream_codec", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
        }});
        json!([filter, codec])
    }
}

/// What a service's filters are told of a callee.
fn callee(node: &Node, edge: &TreeEdge) -> Value {
    let attempts = edge.attempts.unwrap_or(0);
    let mut callee = json!({});
    if node.retries == RetriesBy::Onus && attempts >= 2 {
        callee["retry"] = json!({
            "attempts": attempts,
            "budget-percent": edge.budget_percent.unwrap_or(100),
            "budget-min-per-second": if edge.budget_percent.is_some() { 0 } else { 1000 },
            "budget-from-successes": false,
            "gate": false,
            "probes": false,
        });
    }
    match edge.held {
        Some(class @ (EdgeClass::FailClose | EdgeClass::FailOpen)) => {
            callee["class"] = json!(class.as_str());
        }
        Some(EdgeClass::Unknown) | None => {}
    }
    callee
}

/// Envoy's own policy. A layer below Onus retries every error, and a blind one despite a veto.
fn retry_policy(node: &Node, edge: &TreeEdge) -> Value {
    let (codes, blind) = match node.retries {
        RetriesBy::Onus if !node.onus => return Value::Null,
        RetriesBy::Onus => (json!([503]), ""),
        RetriesBy::ObedientLayer => (json!([501, 503]), ""),
        RetriesBy::BlindLayer => (json!([501, 503]), ",envoy-ratelimited"),
    };
    match edge.attempts.unwrap_or(1).saturating_sub(1) {
        0 => Value::Null,
        retries => json!({
            "num_retries": retries,
            "retry_on": format!("retriable-status-codes,reset{blind}"),
            "retriable_status_codes": codes,
            "retry_back_off": {"base_interval": "0.001s", "max_interval": "0.002s"},
        }),
    }
}

/// The calls of the callee `id`.
fn route(id: &str, retry_policy: &Value) -> Value {
    let mut route = json!({"cluster": id});
    if !retry_policy.is_null() {
        route["retry_policy"] = retry_policy.clone();
    }
    let callee = json!([{"name": CALLEE, "string_match": {"exact": id}}]);
    json!({"match": {"prefix": "/", "headers": callee}, "route": route})
}

fn listener(
    name: &str,
    address: &Value,
    routes: &[Value],
    filter: Option<Value>,
    attempts: &Value,
) -> Value {
    let router = json!({"name": "router", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        "upstream_http_filters": attempts,
    }});
    let filters: Vec<Value> = filter.into_iter().chain([router]).collect();
    let host = json!({
        "name": "all",
        "domains": ["*"],
        "include_request_attempt_count": true,
        "routes": routes,
    });
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "trees",
        "route_config": {"virtual_hosts": [host]},
        "http_filters": filters,
    });
    json!({
        "name": name,
        "address": address,
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    })
}

fn cluster(name: &str, address: &Value) -> Value {
    let endpoint = json!({"endpoint": {"address": address}});
    json!({
        "name": name,
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
        // Envoy's three retries at a time are fewer than some trees make.
        "circuit_breakers": {"thresholds": [{"max_retries": 100}]},
    })
}

fn tcp(port: u16) -> Value {
    json!({"socket_address": {"address": "127.0.0.1", "port_value": port}})
}
