//! The configuration of a sidecar: what operators write, with the parts that tests vary.

use std::fmt::Write as _;
use std::net::SocketAddr;

use super::http::Protocol;

/// The retry policy of the calls through a sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retries {
    None,
    /// What Istio gives every route.
    Istio,
    /// `retry_on: 5xx`, so many retries.
    On5xx(u32),
}

/// The filters of a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filters {
    /// A plain Envoy.
    None,
    /// The dynamic module, with these lines of configuration beside the service's name.
    Module(Vec<(&'static str, String)>),
    /// The module in this mode, with its filter of attempts, and these limits on retries.
    Attempts(&'static str, &'static str),
    /// The Wasm plugin in this mode.
    Wasm(&'static str),
}

impl Filters {
    /// The module in this mode.
    pub(crate) fn module(mode: &str) -> Self {
        Self::Module(vec![("mode", mode.to_owned())])
    }
}

/// A sidecar: the application behind its inbound listener, a callee behind its outbound one.
pub(crate) struct Sidecar<'a> {
    pub(crate) service: &'a str,
    pub(crate) protocol: Protocol,
    pub(crate) app: SocketAddr,
    pub(crate) callee: (&'a str, SocketAddr),
    pub(crate) retries: Retries,
    pub(crate) filters: &'a Filters,
    /// Whether this Envoy does not tell filters of its attempts, so that callees have to.
    pub(crate) old: bool,
}

impl Sidecar<'_> {
    /// The listeners as a file that Envoy watches.
    pub(crate) fn watched_listeners(&self) -> String {
        const TYPE: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
        let listeners = self
            .listeners()
            .replace("  - name: inbound", "  - \"@type\": &type TYPE\n    name: inbound");
        let listeners =
            listeners.replace("  - name: outbound", "  - \"@type\": *type\n    name: outbound");
        format!("resources:\n{}", listeners.replace("TYPE", TYPE))
    }

    /// A configuration whose listeners are in that file.
    pub(crate) fn yaml_watching(&self, file: &std::path::Path) -> String {
        let watched = format!(
            "dynamic_resources: {{lds_config: {{path_config_source: {{path: {}}}}}}}\n\
             node: {{id: test, cluster: test}}\n",
            file.display()
        );
        watched + &self.yaml().replace(&format!("  listeners:\n{}", self.listeners()), "")
    }

    /// The filter of one side as a file that Envoy watches.
    pub(crate) fn watched_filter(&self, side: &str) -> String {
        const TYPE: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
        let filter = self.filter(side).replacen(
            "          - name: onus\n",
            &format!("          - \"@type\": {TYPE}\n            name: onus-{side}\n"),
            1,
        );
        format!("resources:\n{filter}")
    }

    /// A configuration whose filters are in files of that folder, by their sides.
    pub(crate) fn yaml_discovering(&self, folder: &std::path::Path) -> String {
        let mut yaml = format!("node: {{id: test, cluster: test}}\n{}", self.yaml());
        for side in ["inbound", "outbound"] {
            let filter = self.filter(side);
            let from = filter.find("type.googleapis.com").expect("it has a type");
            let kind = filter[from..].lines().next().expect("it is in a line");
            let discovered = format!(
                "          - name: onus-{side}\n            config_discovery:\n              \
                 config_source: {{path_config_source: {{path: {}}}}}\n              \
                 type_urls: [{kind}]\n",
                folder.join(format!("{side}.yaml")).display()
            );
            yaml = yaml.replace(&filter, &discovered);
        }
        yaml
    }

    fn listeners(&self) -> String {
        self.listener("inbound", "app", "")
            + &self.listener("outbound", self.callee.0, &self.retry_policy())
    }

    pub(crate) fn yaml(&self) -> String {
        let (callee, callee_address) = self.callee;
        format!(
            "admin: {{address: {any}}}\n{tags}\
             static_resources:\n  listeners:\n{listeners}  clusters:\n{app}{next}",
            tags = self.stats_tags(),
            any = socket("127.0.0.1:0".parse().unwrap()),
            listeners = self.listeners(),
            app = self.cluster("app", self.app),
            next = self.cluster(callee, callee_address),
        )
    }

    /// What takes the labels of a plugin's counters out of their names, as the example has it.
    fn stats_tags(&self) -> String {
        let Filters::Wasm(_) = self.filters else { return String::new() };
        let example = include_str!("../../../../docs/envoy/wasm.yaml");
        let from = example.find("stats_config:").expect("the example has it");
        let to = example.find("admin:").expect("the example has it");
        example[from..to].to_owned()
    }

    fn listener(&self, name: &str, cluster: &str, retry_policy: &str) -> String {
        format!(
            r#"  - name: {name}
    traffic_direction: {direction}
    address: {any}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: {name}
          codec_type: AUTO
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              include_request_attempt_count: {attempt_count}
              routes:
              - match: {{prefix: "/"}}
                name: calls
                route: {{cluster: {cluster}, timeout: 5s{retry_policy}}}
          http_filters:
{filter}          - name: router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
{attempts}"#,
            any = socket("127.0.0.1:0".parse().unwrap()),
            direction = name.to_uppercase(),
            filter = self.filter(name),
            attempts = if name == "outbound" { self.attempt_filter() } else { String::new() },
            // Istio does.
            attempt_count = self.old || self.retries == Retries::Istio,
        )
    }

    fn retry_policy(&self) -> String {
        match self.retries {
            Retries::None => String::new(),
            Retries::Istio => ", retry_policy: {num_retries: 2, \
                retry_on: \"connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes\", \
                retriable_status_codes: [503], host_selection_retry_max_attempts: 5, \
                retry_back_off: {base_interval: 0.001s, max_interval: 0.002s}}"
                .to_owned(),
            Retries::On5xx(retries) => format!(
                ", retry_policy: {{num_retries: {retries}, retry_on: \"5xx\", \
                 retry_back_off: {{base_interval: 0.001s, max_interval: 0.002s}}}}"
            ),
        }
    }

    fn filter(&self, name: &str) -> String {
        let lines = match self.filters {
            Filters::None => return String::new(),
            Filters::Wasm(mode) => return self.plugin(name, mode),
            Filters::Module(lines) => lines.clone(),
            Filters::Attempts(mode, retry) => {
                let callee = self.callee.0;
                let callees = format!("{{{callee}: {{retry: {retry}}}}}");
                vec![("mode", (*mode).to_owned()), ("callees", callees)]
            }
        };
        let mut text = format!(
            r#"          - name: onus
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter
              dynamic_module_config: {{name: onus_envoy_module, do_not_close: true}}
              filter_name: {name}
              filter_config:
                "@type": type.googleapis.com/google.protobuf.Struct
                value:
                  service: {}
"#,
            self.service
        );
        for (field, value) in &lines {
            writeln!(text, "                  {field}: {value}").unwrap();
        }
        text
    }

    /// The filter of attempts in the router, before what hands them to the connection.
    fn attempt_filter(&self) -> String {
        let Filters::Attempts(..) = self.filters else { return String::new() };
        let filter = self.filter("attempt");
        let filter: String = filter.lines().map(|line| format!("    {line}\n")).collect();
        format!(
            r#"              upstream_http_filters:
{filter}              - name: envoy.filters.http.upstream_codec
                typed_config:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec
"#
        )
    }

    fn plugin(&self, name: &str, mode: &str) -> String {
        format!(
            r#"          - name: onus
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm
              config:
                name: onus-{name}
                configuration:
                  "@type": type.googleapis.com/google.protobuf.StringValue
                  value: '{{"service": "{service}", "mode": "{mode}"}}'
                vm_config:
                  vm_id: onus
                  runtime: envoy.wasm.runtime.v8
                  code: {{local: {{filename: "{file}"}}}}
"#,
            service = self.service,
            file = super::envoy::plugin().display(),
        )
    }

    fn cluster(&self, name: &str, address: SocketAddr) -> String {
        let http2 = if self.protocol.is_http2() {
            r#"    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
"#
        } else {
            ""
        };
        format!(
            r"  - name: {name}
    connect_timeout: 1s
    type: STATIC
{breakers}    load_assignment: {{cluster_name: {name}, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {address}}}}}]}}]}}
{http2}",
            address = socket(address),
            // Envoy refuses a fourth retry at a time, and one that is old does not tell.
            breakers = if self.old {
                "    circuit_breakers: {thresholds: [{max_retries: 100}]}\n"
            } else {
                ""
            },
        )
    }
}

fn socket(address: SocketAddr) -> String {
    format!("{{socket_address: {{address: {}, port_value: {}}}}}", address.ip(), address.port())
}
