//! The configurations and manifests of `docs/envoy/`, tried by Envoy itself.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cast::{Envoy, command, module_dir, plugin, scratch};

fn example(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/envoy");
    let text = fs::read_to_string(docs.join(name)).unwrap();
    text.replace("/usr/lib/onus/onus_envoy_wasm.wasm", plugin().to_str().unwrap())
}

fn manifest(name: &str) -> Value {
    serde_saphyr::from_str(&example(name)).unwrap()
}

/// What Envoy says of a configuration: whether it takes it, and its log.
async fn validate(binary: &Path, config: &str) -> (bool, String) {
    validate_with(binary, config, &module_dir()).await
}

/// The same with the library of this folder.
pub(super) async fn validate_with(binary: &Path, config: &str, library: &Path) -> (bool, String) {
    let dir = scratch();
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("envoy.yaml");
    fs::write(&file, config).unwrap();
    let mut command = command(binary, &file, library);
    let output = command.args(["--mode", "validate"]).output().await.unwrap();
    fs::remove_dir_all(&dir).unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A configuration with this one filter.
fn with_filter(filter: &Value) -> String {
    let router = json!({"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}});
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "a",
        "route_config": {},
        "http_filters": [filter, router],
    });
    let listener = json!({
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    });
    json!({"static_resources": {"listeners": [listener]}}).to_string()
}

/// The plugin with this configuration.
fn plugin_filter(config: &Value) -> Value {
    let text = json!({"@type": "type.googleapis.com/google.protobuf.StringValue", "value": config.to_string()});
    let vm = json!({"vm_id": "onus", "runtime": "envoy.wasm.runtime.v8", "code": {"local": {"filename": plugin()}}});
    json!({"name": "onus", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
        "config": {"name": "onus", "configuration": text, "vm_config": vm},
    }})
}

/// Envoy takes all of these.
async fn takes(binary: &Path, configs: &[String]) {
    for config in configs {
        let (taken, log) = validate(binary, config).await;
        assert!(taken, "{config}\n{log}");
    }
}

#[tokio::test]
async fn envoy_takes_every_example_with_the_module() {
    let Some(binary) = Envoy::binary("envoy_takes_every_example_with_the_module") else { return };
    let mut configs = vec![example("module.yaml")];
    let patches = manifest("istio-envoy-filter.yaml");
    for patch in patches["spec"]["configPatches"].as_array().unwrap() {
        assert_eq!(
            (&patch["applyTo"], &patch["patch"]["operation"]),
            (&json!("HTTP_FILTER"), &json!("INSERT_BEFORE"))
        );
        let mut filter = patch["patch"]["value"].clone();
        // Istio says it in the environment of its proxies.
        filter["typed_config"]["filter_config"]["value"]["service"] = json!("shop/checkout");
        configs.push(with_filter(&filter));
    }
    assert_eq!(configs.len(), 3);
    takes(&binary, &configs).await;
}

#[tokio::test]
async fn envoy_takes_every_example_with_the_plugin() {
    let test = "envoy_takes_every_example_with_the_plugin";
    let Some(binary) = Envoy::binary_and_plugin(test) else { return };
    let mut configs = vec![example("wasm.yaml")];
    let mut plugin = manifest("istio-wasm-plugin.yaml")["spec"]["pluginConfig"].clone();
    plugin["service"] = json!("shop/checkout");
    configs.push(with_filter(&plugin_filter(&plugin)));
    let gateway = manifest("envoy-gateway.yaml");
    configs.push(with_filter(&plugin_filter(&gateway["spec"]["wasm"][0]["config"])));
    assert_eq!(configs.len(), 3);
    takes(&binary, &configs).await;
}

/// Envoy refuses these filters, and its log says why.
async fn refuses<const N: usize>(binary: &Path, filters: [(Value, &str); N]) {
    for (filter, says) in filters {
        let (taken, log) = validate(binary, &with_filter(&filter)).await;
        assert!(!taken && log.contains(says), "{says}\n{log}");
    }
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_with_the_field() {
    let Some(binary) = Envoy::binary("a_wrong_configuration") else { return };
    let module = |name: &str, config: Value| {
        let config =
            json!({"@type": "type.googleapis.com/google.protobuf.Struct", "value": config});
        json!({"name": "onus", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
            "dynamic_module_config": {"name": "onus_envoy_module", "do_not_close": true},
            "filter_name": name,
            "filter_config": config,
        }})
    };
    let filters = [
        (
            module("in", json!({"service": "a"})),
            "filter_name is \"in\"; allowed is inbound, outbound or attempt",
        ),
        (
            module("inbound", json!({})),
            "service is not given; allowed is a name such as shop/checkout",
        ),
        (
            module("inbound", json!({"service": "a", "mod": "off"})),
            "unknown field `mod`, expected one of `filter`, `service`, `mode`",
        ),
        (
            module("inbound", json!({"service": "a", "callees": {"b": {"retry": {"gate": "no"}}}})),
            "callees.b.retry.gate is not what is allowed: invalid type: string \"no\"",
        ),
        (
            module("inbound", json!({"service": "a", "filter": "outbound"})),
            "filter is given; allowed is none for the module",
        ),
        (
            module("outbound", json!({"service": "a", "mode": "on"})),
            "mode is \"on\"; allowed is off, observe, enforce, or enforce with a share",
        ),
    ];
    refuses(&binary, filters).await;
}

#[tokio::test]
async fn a_wrong_configuration_of_the_plugin_is_refused_with_the_field() {
    let Some(binary) = Envoy::binary_and_plugin("a_wrong_configuration_of_the_plugin") else {
        return;
    };
    let filters = [
        (
            plugin_filter(&json!({"service": "a", "mode": "on"})),
            "mode is \"on\"; allowed is off, observe, enforce, or enforce with a share",
        ),
        (
            plugin_filter(&json!({"service": "a", "filter": "both"})),
            "filter is \"both\"; allowed is inbound or outbound",
        ),
        (
            plugin_filter(&json!({"service": "a", "switch-file": "/etc/onus/switch"})),
            "switch-file is given; allowed is none for a plugin, which reads no files",
        ),
    ];
    refuses(&binary, filters).await;
}
