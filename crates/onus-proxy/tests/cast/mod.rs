//! Proxies for tests.

use std::net::SocketAddr;

use onus_proxy::{ConfigFile, Proxy, ProxyConfig};

/// A proxy with this configuration, on any free ports.
pub(crate) async fn proxy(yaml: &str) -> Proxy {
    let file = ConfigFile::parse(yaml).expect("a configuration");
    Proxy::start(&ProxyConfig::new(file).expect("a sound configuration")).await.expect("a proxy")
}

/// The configuration of a service that tries each call twice and has one callee.
pub(crate) fn chained(
    service: &str,
    app: SocketAddr,
    callee: Option<(&str, SocketAddr)>,
) -> String {
    let callees = callee.map_or_else(String::new, |(name, address)| {
        format!(
            "callees: {{{name}: {{address: \"{address}\", retry: \
             {{attempts: 2, no-budget: true, no-probes: true, backoff-base: 1ms, backoff-max: 2ms}}}}}}\n"
        )
    });
    format!(
        "service: {service}\nmode: enforce\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{app}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\n{callees}"
    )
}
