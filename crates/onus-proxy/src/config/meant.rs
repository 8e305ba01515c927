//! The configuration as meant: every text read, every default taken.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::HeaderName;
use onus::{Correlation, Onus};

use super::ProxyConfigError;
use super::callee;
use super::file::{CalleeFile, ConfigFile, OneOrMany, ProtocolWord};
use crate::pool::{Protocol, Target};

/// The configuration of a proxy, as meant.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    pub(crate) file: ConfigFile,
    pub(crate) app: Target,
    pub(crate) app_protocol: Protocol,
    pub(crate) correlation: Correlation,
    pub(crate) callees: Vec<CalleeConfig>,
}

/// A callee, as meant.
#[derive(Clone, Debug)]
pub(crate) struct CalleeConfig {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
    pub(crate) hosts: Vec<String>,
    pub(crate) listen: Option<SocketAddr>,
}

/// Where the proxy listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) inbound: SocketAddr,
    pub(crate) outbound: SocketAddr,
}

impl ProxyConfig {
    /// Checks what a file says.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant.
    pub fn new(file: ConfigFile) -> Result<Self, ProxyConfigError> {
        let app = target("inbound.app", std::slice::from_ref(&file.inbound.app))?;
        let app_protocol = protocol(file.inbound.protocol);
        let ids = file.correlation.ids.iter().map(|name| header("correlation.ids", name));
        let correlation = Correlation::new(ids.collect::<Result<Vec<_>, _>>()?);
        let callees = file.callees.iter().map(|(name, callee)| CalleeConfig::new(name, callee));
        let callees = callees.collect::<Result<_, _>>()?;
        let config = Self { app, app_protocol, correlation, callees, file };
        config.onus()?;
        Ok(config)
    }

    /// Threads that serve.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.file.workers
    }

    /// Where the proxy listens.
    pub(crate) fn listen(&self) -> Listen {
        Listen { inbound: self.file.inbound.listen, outbound: self.file.outbound.listen }
    }

    /// The file whose mode and shield are followed.
    pub(crate) fn switch_file(&self) -> Option<&PathBuf> {
        self.file.switch_file.as_ref()
    }

    /// The layers' side of it.
    pub(crate) fn onus(&self) -> Result<Onus, ProxyConfigError> {
        let file = &self.file;
        let mut builder = Onus::builder(&file.service).mode(file.mode.0);
        builder = builder.replay_limits(file.replay.per_request.0, file.replay.total.0);
        if file.silent_claims {
            builder = builder.silent_claims();
        }
        if file.inbound.untrusted_callers {
            builder = builder.untrusted_callers();
        }
        if let Some(alias) = &file.claim_alias {
            builder = builder.claim_alias(header("claim-alias", alias)?);
        }
        for (name, callee) in &file.callees {
            builder = callee::configure(builder, name, callee)?;
        }
        Ok(builder.build()?)
    }
}

impl CalleeConfig {
    fn new(name: &str, file: &CalleeFile) -> Result<Self, ProxyConfigError> {
        let OneOrMany(addresses) = &file.address;
        let target = target(&format!("callees.{name}.address"), addresses)?;
        let mut hosts = file.hosts.clone();
        hosts.push(name.to_owned());
        hosts.extend(addresses.iter().cloned());
        if let Target::Name { host, .. } = &target {
            hosts.push(host.clone());
        }
        let (protocol, listen) = (protocol(file.protocol), file.listen);
        Ok(Self { name: name.to_owned(), target, protocol, hosts, listen })
    }
}

fn protocol(word: ProtocolWord) -> Protocol {
    match word {
        ProtocolWord::AsReceived => Protocol::AsReceived,
        ProtocolWord::Http1 => Protocol::Http1,
        ProtocolWord::Http2 => Protocol::Http2,
    }
}

fn target(field: &str, addresses: &[String]) -> Result<Target, ProxyConfigError> {
    let wrong = |value: &str| ProxyConfigError::Value {
        field: field.to_owned(),
        value: value.to_owned(),
        allowed: "one name with a port such as payments:8080, or one or more IP addresses with ports",
    };
    let parsed: Vec<SocketAddr> = addresses.iter().filter_map(|text| text.parse().ok()).collect();
    if parsed.len() == addresses.len() && !parsed.is_empty() {
        return Ok(Target::Addresses(parsed));
    }
    let [name] = addresses else {
        return Err(wrong(&addresses.join(", ")));
    };
    let (host, port) = name.rsplit_once(':').ok_or_else(|| wrong(name))?;
    match port.parse() {
        Ok(port) if !host.is_empty() && !host.contains(':') => {
            Ok(Target::Name { host: host.to_owned(), port })
        }
        Ok(_) | Err(_) => Err(wrong(name)),
    }
}

fn header(field: &str, name: &str) -> Result<HeaderName, ProxyConfigError> {
    HeaderName::try_from(name).map_err(|_| ProxyConfigError::Value {
        field: field.to_owned(),
        value: name.to_owned(),
        allowed: "the name of a header",
    })
}
