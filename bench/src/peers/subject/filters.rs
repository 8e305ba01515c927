//! The filters of an Envoy: those of Onus, and filters that do nothing.

use std::path::Path;

use serde_json::{Value, json};

use super::envoy::Envoy;

/// The filters of an Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Filters {
    /// A dynamic module that does nothing.
    EmptyModule,
    ModuleInbound,
    ModuleOutbound,
    /// The outbound filter, and that of attempts with limits on retries.
    ModuleAttempts,
    /// A Wasm plugin that does nothing.
    EmptyPlugin,
    PluginInbound,
    PluginOutbound,
}

impl Filters {
    /// What stands before the router.
    pub(super) fn before_router(self, envoy: &Envoy) -> Value {
        match self {
            Self::EmptyModule => module("onus_bench_empty", "inbound"),
            Self::ModuleInbound => module("onus_envoy_module", "inbound"),
            Self::ModuleOutbound => module("onus_envoy_module", "outbound"),
            Self::ModuleAttempts => module_with("onus_envoy_module", "outbound", &limits()),
            Self::EmptyPlugin => {
                plugin(&envoy.plugin.with_file_name("onus_bench_empty.wasm"), "inbound")
            }
            Self::PluginInbound => plugin(&envoy.plugin, "inbound"),
            Self::PluginOutbound => plugin(&envoy.plugin, "outbound"),
        }
    }

    /// What stands in the router.
    pub(super) fn in_router(self) -> Vec<Value> {
        let codec =
            "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec";
        match self {
            Self::ModuleAttempts => vec![
                module_with("onus_envoy_module", "attempt", &limits()),
                json!({ "name": "codec", "typed_config": { "@type": codec } }),
            ],
            Self::EmptyModule
            | Self::ModuleInbound
            | Self::ModuleOutbound
            | Self::EmptyPlugin
            | Self::PluginInbound
            | Self::PluginOutbound => Vec::new(),
        }
    }
}

/// Limits on the retries of calls to the backend.
fn limits() -> Value {
    json!({ "backend": { "retry": {} } })
}

fn module(library: &str, filter: &str) -> Value {
    module_with(library, filter, &json!({}))
}

fn module_with(library: &str, filter: &str, callees: &Value) -> Value {
    json!({
        "name": "onus",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
            "dynamic_module_config": { "name": library, "do_not_close": true },
            "filter_name": filter,
            "filter_config": {
                "@type": "type.googleapis.com/google.protobuf.Struct",
                "value": { "service": "bench", "mode": "enforce", "callees": callees },
            },
        },
    })
}

fn plugin(file: &Path, filter: &str) -> Value {
    let configuration = json!({ "service": "bench", "mode": "enforce", "filter": filter });
    json!({
        "name": "onus",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": {
                "name": "onus",
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.StringValue",
                    "value": configuration.to_string(),
                },
                "vm_config": {
                    "vm_id": "onus",
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": { "local": { "filename": file } },
                },
            },
        },
    })
}
