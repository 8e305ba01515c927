//! Envoy with one worker, a listener and a cluster, and every default.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::Running;
use crate::peers::process::child::{Process, free_address, written};
use crate::peers::process::cpu;

pub(super) async fn start(
    program: &Path,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Running> {
    let listen = free_address()?;
    let config = written(folder, "envoy.json", &config(listen, backend).to_string())?;
    let mut command = Command::new(program);
    command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]);
    command.arg("--config-path").arg(config);
    let mut process = Process::start("envoy", command, cpu::PROXY, folder)?;
    process.listens(listen).await?;
    Ok(Running { process: Some(process), http1: listen, http2: listen })
}

fn config(listen: SocketAddr, backend: SocketAddr) -> serde_json::Value {
    let socket = |address: SocketAddr| {
        let (host, port) = (address.ip().to_string(), address.port());
        json!({ "socket_address": { "address": host, "port_value": port } })
    };
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
        "http_filters": [{
            "name": "envoy.filters.http.router",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        }],
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
