//! Envoy with one worker, a listener and a cluster, and every default; and the same with filters.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::Running;
use super::filters::Filters;
use crate::peers::process::child::{Process, free_address, written};
use crate::peers::process::cpu;

/// Envoy, and what its filters are in.
#[derive(Clone, Debug)]
pub(crate) struct Envoy {
    pub(crate) program: PathBuf,
    /// The library of the dynamic module.
    pub(crate) module: PathBuf,
    /// The Wasm plugin.
    pub(crate) plugin: PathBuf,
}

pub(super) async fn start(
    name: &'static str,
    envoy: &Envoy,
    filters: Option<Filters>,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Running> {
    let listen = free_address()?;
    let config = config(listen, backend, envoy, filters);
    let config = written(folder, &format!("{name}.json"), &config.to_string())?;
    let mut command = Command::new(&envoy.program);
    command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]);
    command.arg("--config-path").arg(config);
    // The empty module is beside that of Onus.
    if let Some(folder) = envoy.module.parent() {
        command.env("ENVOY_DYNAMIC_MODULES_SEARCH_PATH", folder);
    }
    let mut process = Process::start(name, command, cpu::PROXY, folder)?;
    process.listens(listen).await?;
    Ok(Running { process: Some(process), http1: listen, http2: listen })
}

fn config(
    listen: SocketAddr,
    backend: SocketAddr,
    envoy: &Envoy,
    filters: Option<Filters>,
) -> Value {
    let socket = |address: SocketAddr| {
        let (host, port) = (address.ip().to_string(), address.port());
        json!({ "socket_address": { "address": host, "port_value": port } })
    };
    let before = filters.map(|filters| filters.before_router(envoy));
    let router = json!({
        "name": "envoy.filters.http.router",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
            "upstream_http_filters": filters.map(Filters::in_router).unwrap_or_default(),
        },
    });
    let http_filters: Vec<Value> = before.into_iter().chain([router]).collect();
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "bench",
        // HTTP/1.1 or HTTP/2, whatever a client begins with.
        "codec_type": "AUTO",
        "route_config": { "virtual_hosts": [{
            "name": "all",
            "domains": ["*"],
            "routes": [{ "match": { "prefix": "/" }, "route": { "cluster": "backend" } }],
        }] },
        "http_filters": http_filters,
    });
    let filter =
        json!({ "name": "envoy.filters.network.http_connection_manager", "typed_config": manager });
    let protocols = json!({
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "use_downstream_protocol_config": {
            "http_protocol_options": {}, "http2_protocol_options": {},
        },
    });
    let endpoint = json!({ "lb_endpoints": [{ "endpoint": { "address": socket(backend) } }] });
    json!({ "static_resources": {
        "listeners": [{
            "name": "listener",
            "address": socket(listen),
            "filter_chains": [{ "filters": [filter] }],
        }],
        "clusters": [{
            "name": "backend",
            "type": "STATIC",
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocols,
            },
            "load_assignment": { "cluster_name": "backend", "endpoints": [endpoint] },
        }],
    } })
}
