//! The manifests of `docs/envoy/` against what the APIs of Istio and Envoy Gateway allow in the fields
//! that they use. No cluster and no file of the APIs' own is needed; what Envoy is handed by them is
//! tried by Envoy, beside this.

use std::fs;
use std::path::Path;

use onus_envoy::FilterConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What every manifest has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Manifest<S> {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: S,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
    namespace: String,
}

/// `extensions.istio.io/v1alpha1`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WasmPlugin {
    url: String,
    phase: Phase,
    #[serde(rename = "priority")]
    _priority: i32,
    fail_strategy: FailStrategy,
    #[serde(rename = "match")]
    matches: Vec<TrafficSelector>,
    plugin_config: Value,
}

#[derive(Deserialize, PartialEq, Eq, Debug)]
#[serde(rename_all = "UPPERCASE")]
enum Phase {
    #[serde(rename = "UNSPECIFIED_PHASE")]
    Unspecified,
    Authn,
    Authz,
    Stats,
}

#[derive(Deserialize, PartialEq, Eq, Debug)]
enum FailStrategy {
    #[serde(rename = "FAIL_CLOSE")]
    Close,
    #[serde(rename = "FAIL_OPEN")]
    Open,
    #[serde(rename = "FAIL_RELOAD")]
    Reload,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrafficSelector {
    mode: WorkloadMode,
}

#[derive(Deserialize, PartialEq, Eq, Debug)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum WorkloadMode {
    Undefined,
    Client,
    Server,
    ClientAndServer,
}

/// `networking.istio.io/v1alpha3`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EnvoyFilter {
    config_patches: Vec<ConfigPatch>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigPatch {
    apply_to: String,
    #[serde(rename = "match")]
    matches: PatchMatch,
    patch: Patch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchMatch {
    context: PatchContext,
    listener: ListenerMatch,
}

#[derive(Deserialize, PartialEq, Eq, Debug)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum PatchContext {
    Any,
    SidecarInbound,
    SidecarOutbound,
    Gateway,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListenerMatch {
    filter_chain: ChainMatch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChainMatch {
    filter: NetworkFilterMatch,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NetworkFilterMatch {
    name: String,
    sub_filter: SubFilterMatch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubFilterMatch {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    operation: String,
    value: Value,
}

/// `gateway.envoyproxy.io/v1alpha1`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EnvoyExtensionPolicy {
    target_refs: Vec<TargetRef>,
    wasm: Vec<Wasm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetRef {
    group: String,
    kind: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wasm {
    name: String,
    #[serde(rename = "rootID")]
    _root_id: String,
    fail_open: bool,
    code: WasmCode,
    config: Value,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum WasmCode {
    Image {
        image: Location,
    },
    #[serde(rename = "HTTP")]
    Http {
        http: Location,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Location {
    url: String,
}

/// The manifest of this name; it must be of this kind.
fn manifest<S: DeserializeOwned>(name: &str, api_version: &str, kind: &str) -> S {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/envoy");
    let text = fs::read_to_string(docs.join(name)).unwrap();
    let manifest: Manifest<S> = serde_saphyr::from_str(&text).unwrap();
    assert_eq!((manifest.api_version.as_str(), manifest.kind.as_str()), (api_version, kind));
    for label in [manifest.metadata.name, manifest.metadata.namespace] {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!label.is_empty() && label.len() <= 63 && label.chars().all(allowed), "{label}");
    }
    manifest.spec
}

/// The filters' own configuration, by their own parser.
fn config(config: &Value) -> FilterConfig {
    FilterConfig::parse(config.to_string().as_bytes()).unwrap()
}

#[test]
fn the_manifests_have_the_fields_of_their_apis() {
    let plugin: WasmPlugin =
        manifest("istio-wasm-plugin.yaml", "extensions.istio.io/v1alpha1", "WasmPlugin");
    assert!(plugin.url.starts_with("oci://"), "{}", plugin.url);
    assert_eq!(plugin.fail_strategy, FailStrategy::Open, "a broken plugin costs no request");
    assert_eq!(plugin.phase, Phase::Stats, "an earlier one does not see all requests");
    assert_eq!(plugin.matches.len(), 1);
    assert_eq!(plugin.matches[0].mode, WorkloadMode::ClientAndServer);
    assert_eq!(config(&plugin.plugin_config).for_plugin().unwrap(), None);
    assert_eq!(config(&plugin.plugin_config).mode, "observe");

    let filter: EnvoyFilter =
        manifest("istio-envoy-filter.yaml", "networking.istio.io/v1alpha3", "EnvoyFilter");
    let sides =
        [(PatchContext::SidecarInbound, "inbound"), (PatchContext::SidecarOutbound, "outbound")];
    assert_eq!(filter.config_patches.len(), sides.len());
    let mut configs = Vec::new();
    for (patch, (context, name)) in filter.config_patches.iter().zip(sides) {
        assert_eq!((patch.apply_to.as_str(), &patch.matches.context), ("HTTP_FILTER", &context));
        let network = &patch.matches.listener.filter_chain.filter;
        assert_eq!(network.name, "envoy.filters.network.http_connection_manager");
        assert_eq!(network.sub_filter.name, "envoy.filters.http.router");
        assert_eq!(patch.patch.operation, "INSERT_BEFORE");
        let typed = &patch.patch.value["typed_config"];
        assert_eq!(typed["filter_name"], name);
        configs.push(config(&typed["filter_config"]["value"]));
    }
    assert_eq!(configs[0], configs[1], "both filters of a service share one memory");

    let policy: EnvoyExtensionPolicy =
        manifest("envoy-gateway.yaml", "gateway.envoyproxy.io/v1alpha1", "EnvoyExtensionPolicy");
    let [target] = policy.target_refs.as_slice() else { panic!("one target") };
    assert_eq!(
        (target.group.as_str(), target.kind.as_str()),
        ("gateway.networking.k8s.io", "Gateway")
    );
    assert!(!target.name.is_empty());
    let [wasm] = policy.wasm.as_slice() else { panic!("one plugin") };
    assert_eq!((wasm.name.as_str(), wasm.fail_open), ("onus", true));
    let (WasmCode::Image { image: location } | WasmCode::Http { http: location }) = &wasm.code;
    assert!(!location.url.is_empty());
    let gateway = config(&wasm.config);
    assert_eq!(gateway.clone().for_plugin().unwrap(), Some(onus_envoy::Direction::Outbound));
    assert_eq!(gateway.mode, "observe");
}
