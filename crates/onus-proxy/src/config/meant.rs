//! The configuration as meant: every text read, every default taken.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use onus::report::Analysis;
use onus::{Correlation, Onus, OnusBuilder};

use super::ProxyConfigError;
use super::analysis::AnalysisFile;
use super::authorities;
use super::callee;
use super::file::{CalleeFile, CalleeTlsFile, ConfigFile, DrainFile, ForwardingFile, ProtocolWord};
use super::one_or_many::OneOrMany;
use crate::connection::ServerLimits;
use crate::forwarding::{Forwarding, Network};
use crate::pool::{PoolLimits, Protocol, Target};
use crate::routes::Routes;
use crate::tls::{ClientTls, ServerTls, TlsFiles};

/// The configuration of a proxy, as meant.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    pub(crate) file: ConfigFile,
    pub(crate) app: Target,
    pub(crate) app_protocol: Protocol,
    pub(crate) correlation: Correlation,
    pub(crate) routes: Routes,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) callees: Vec<CalleeConfig>,
}

/// A callee, as meant.
#[derive(Clone, Debug)]
pub(crate) struct CalleeConfig {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
    /// Its name, and the authorities that the file gives it.
    pub(crate) hosts: Vec<String>,
    /// What its address is called by, where that means no other callee.
    pub(crate) implied_hosts: Vec<String>,
    pub(crate) routes: Routes,
    pub(crate) listen: Option<SocketAddr>,
    /// The files, and the name of the callee.
    pub(crate) tls: Option<(TlsFiles, String)>,
}

/// Where the proxy listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) inbound: SocketAddr,
    pub(crate) outbound: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl ProxyConfig {
    /// Checks what a file says.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant.
    pub fn new(file: ConfigFile) -> Result<Self, ProxyConfigError> {
        let places = file.places.clone();
        Self::of(file).map_err(|error| error.at(&places))
    }

    fn of(file: ConfigFile) -> Result<Self, ProxyConfigError> {
        let app = target("inbound.app", std::slice::from_ref(&file.inbound.app))?;
        let app_protocol = protocol(file.inbound.protocol);
        let ids = file.correlation.ids.iter().map(|name| header("correlation.ids", name));
        let correlation = Correlation::new(ids.collect::<Result<Vec<_>, _>>()?);
        let callees = file.callees.iter().map(|(name, callee)| CalleeConfig::new(name, callee));
        let mut callees = callees.collect::<Result<Vec<_>, _>>()?;
        authorities::settle(&mut callees)?;
        check_limits(&file)?;
        refuse_itself(&file, &app, &callees)?;
        networks("inbound.forwarding.trusted", &file.inbound.forwarding)?;
        networks("outbound.forwarding.trusted", &file.outbound.forwarding)?;
        let routes = routes("inbound.routes", &file.inbound.routes)?;
        let tls = file.inbound.tls.as_ref().map(|tls| TlsFiles {
            identity: Some((tls.certificate.clone(), tls.key.clone())),
            trusted: tls.client_ca.clone(),
        });
        let config = Self { app, app_protocol, correlation, routes, tls, callees, file };
        config.builder()?.validate()?;
        config.server_tls()?;
        config.analysis()?;
        config.callees.iter().try_for_each(|callee| callee.client_tls().map(drop))?;
        Ok(config)
    }

    /// Threads that serve.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.file.workers
    }

    /// Where the proxy listens.
    pub(crate) fn listen(&self) -> Listen {
        Listen {
            inbound: self.file.inbound.listen,
            outbound: self.file.outbound.listen,
            admin: self.file.admin.listen,
        }
    }

    /// The bounds of listeners and their connections.
    pub(crate) fn server_limits(&self) -> ServerLimits {
        let limits = &self.file.limits;
        ServerLimits {
            connections: limits.connections,
            headers: limits.headers,
            header_bytes: limits.header_size.0,
            header_timeout: limits.header_timeout.0,
            idle_timeout: limits.idle_timeout.0,
            streams: limits.streams,
            resets: limits.resets,
            idle_frames: limits.idle_frames,
        }
    }

    /// The bounds of connections to an instance.
    pub(crate) fn pool_limits(&self) -> PoolLimits {
        let limits = &self.file.limits;
        PoolLimits {
            connections: limits.callee_connections,
            http2_connections: limits.callee_http2_connections,
            streams: limits.callee_streams,
            header_bytes: limits.header_size.0,
            pending: limits.callee_pending,
            connect: limits.connect_timeout.0,
            idle: limits.callee_idle_timeout.0,
        }
    }

    /// The file whose mode and shield are followed.
    pub(crate) fn switch_file(&self) -> Option<&PathBuf> {
        self.file.switch_file.as_ref()
    }

    /// The analysis that is reported to.
    pub(crate) fn analysis(&self) -> Result<Option<Analysis>, ProxyConfigError> {
        self.file.analysis.as_ref().map(AnalysisFile::meant).transpose()
    }

    /// The file with the token for other machines.
    pub(crate) fn token_file(&self) -> Option<&PathBuf> {
        self.file.admin.token_file.as_ref()
    }

    /// How the proxy ends.
    pub(crate) fn drain(&self) -> &DrainFile {
        &self.file.drain
    }

    /// Requests to the application at a time.
    pub(crate) fn requests_max(&self) -> usize {
        self.file.limits.requests
    }

    /// Refuses what a running proxy cannot take over from `next`.
    pub(crate) fn refuse_restart(&self, next: &Self) -> Result<(), ProxyConfigError> {
        let own = |config: &Self| -> Vec<_> {
            let listens = config.callees.iter().filter(|callee| callee.listen.is_some());
            listens.map(|callee| (callee.name.clone(), callee.listen)).collect()
        };
        for (field, same) in [
            ("inbound.listen", self.listen().inbound == next.listen().inbound),
            ("outbound.listen", self.listen().outbound == next.listen().outbound),
            ("admin.listen", self.listen().admin == next.listen().admin),
            ("callees.listen", own(self) == own(next)),
            ("inbound.app", self.app == next.app),
            ("inbound.tls", self.tls == next.tls),
            ("inbound.forwarding", self.file.inbound.forwarding == next.file.inbound.forwarding),
            ("outbound.forwarding", self.file.outbound.forwarding == next.file.outbound.forwarding),
            ("inbound.protocol", self.app_protocol == next.app_protocol),
            ("correlation", self.file.correlation.ids == next.file.correlation.ids),
            ("workers", self.file.workers == next.file.workers),
            // Another one does not know what was reported to this one.
            ("analysis", self.file.analysis == next.file.analysis),
            ("switch-file", self.file.switch_file == next.file.switch_file),
            ("limits", self.server_limits() == next.server_limits()),
        ] {
            if !same {
                return Err(ProxyConfigError::NeedsRestart { field: field.to_owned() });
            }
        }
        Ok(())
    }

    /// What requests and calls are told of the way that they came.
    pub(crate) fn forwarding(&self) -> [Option<Arc<Forwarding>>; 2] {
        let sides =
            [("in", &self.file.inbound.forwarding), ("out", &self.file.outbound.forwarding)];
        sides.map(|(side, file)| {
            // They were read before.
            let trusted = networks(side, file).unwrap_or_default();
            let ForwardingFile { via, forwarded, x_forwarded, .. } = *file;
            Forwarding::new(side, &self.file.service, via, forwarded, x_forwarded, trusted)
        })
    }

    /// What callers are shown.
    pub(crate) fn server_tls(&self) -> Result<Option<ServerTls>, ProxyConfigError> {
        let tls = self.tls.clone().map(ServerTls::of).transpose();
        tls.map_err(|source| ProxyConfigError::Tls { field: "inbound.tls".to_owned(), source })
    }

    /// The layers' side of it.
    pub(crate) fn onus(&self) -> Result<Onus, ProxyConfigError> {
        Ok(self.builder()?.build()?)
    }

    /// What the layers are told.
    pub(crate) fn builder(&self) -> Result<OnusBuilder, ProxyConfigError> {
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
        Ok(builder)
    }
}

impl CalleeConfig {
    /// Whose certificate is asked for.
    pub(crate) fn client_tls(&self) -> Result<Option<Arc<ClientTls>>, ProxyConfigError> {
        let Some((files, name)) = &self.tls else { return Ok(None) };
        let tls = ClientTls::of(files, name).map(Arc::new).map(Some);
        let field = || format!("callees.{}.tls", self.name);
        tls.map_err(|source| ProxyConfigError::Tls { field: field(), source })
    }

    fn new(name: &str, file: &CalleeFile) -> Result<Self, ProxyConfigError> {
        let OneOrMany(addresses) = &file.address;
        let target = target(&format!("callees.{name}.address"), addresses)?;
        let mut hosts = file.hosts.clone();
        hosts.push(name.to_owned());
        let mut implied_hosts = addresses.clone();
        if let Target::Name { host, .. } = &target {
            implied_hosts.push(host.clone());
        }
        let (protocol, listen) = (protocol(file.protocol), file.listen);
        let routes = routes(&format!("callees.{name}.routes"), &file.routes)?;
        let tls = file.tls.as_ref().map(|tls| tls_of(name, tls, &target)).transpose()?;
        let name = name.to_owned();
        Ok(Self { name, target, protocol, hosts, implied_hosts, routes, listen, tls })
    }
}

/// Bounds of zero would let nothing through.
fn check_limits(file: &ConfigFile) -> Result<(), ProxyConfigError> {
    let limits = &file.limits;
    let counts = [
        ("connections", limits.connections, 1, 1_000_000, "1 to 1000000"),
        ("requests", limits.requests, 1, 1_000_000, "1 to 1000000"),
        ("headers", limits.headers, 10, 10_000, "10 to 10000"),
        ("header-size", limits.header_size.0, 4 << 10, 1 << 20, "4KiB to 1MiB"),
        ("streams", limits.streams as usize, 1, 100_000, "1 to 100000"),
        ("resets", limits.resets, 1, 100_000, "1 to 100000"),
        ("idle-frames", limits.idle_frames as usize, 10, 1_000_000, "10 to 1000000"),
        ("callee-connections", limits.callee_connections, 1, 100_000, "1 to 100000"),
        ("callee-http2-connections", limits.callee_http2_connections, 1, 1_000, "1 to 1000"),
        ("callee-streams", limits.callee_streams, 1, 100_000, "1 to 100000"),
        ("callee-pending", limits.callee_pending, 0, 1_000_000, "0 to 1000000"),
    ];
    for (name, value, min, max, allowed) in counts {
        if !(min..=max).contains(&value) {
            let (field, value) = (format!("limits.{name}"), value.to_string());
            return Err(ProxyConfigError::Value { field, value, allowed });
        }
    }
    let times = [
        ("limits.header-timeout", limits.header_timeout),
        ("limits.idle-timeout", limits.idle_timeout),
        ("limits.connect-timeout", limits.connect_timeout),
        ("limits.callee-idle-timeout", limits.callee_idle_timeout),
    ];
    for (field, value) in times {
        let (min, max) = (Duration::from_millis(10), Duration::from_secs(24 * 3600));
        if !(min..=max).contains(&value.0) {
            let (field, value) = (field.to_owned(), value.to_string());
            return Err(ProxyConfigError::Value { field, value, allowed: "10ms to 24h" });
        }
    }
    if !(1..=256).contains(&file.workers) {
        let (field, value) = ("workers".to_owned(), file.workers.to_string());
        return Err(ProxyConfigError::Value { field, value, allowed: "1 to 256" });
    }
    Ok(())
}

fn networks(field: &str, file: &ForwardingFile) -> Result<Vec<Network>, ProxyConfigError> {
    let network = |text: &String| {
        text.parse().map_err(|()| ProxyConfigError::Value {
            field: field.to_owned(),
            value: text.clone(),
            allowed: "a network such as 10.0.0.0/8 or fd00::/8, or one address",
        })
    };
    file.trusted.iter().map(network).collect()
}

/// A proxy whose application or callee is the proxy itself would ask itself without end.
fn refuse_itself(
    file: &ConfigFile,
    app: &Target,
    callees: &[CalleeConfig],
) -> Result<(), ProxyConfigError> {
    let calls: Vec<SocketAddr> = std::iter::once(file.outbound.listen)
        .chain(callees.iter().filter_map(|callee| callee.listen))
        .collect();
    let is = |own: &SocketAddr, at: &SocketAddr| {
        let here = own.ip() == at.ip() || (own.ip().is_unspecified() && at.ip().is_loopback());
        here && own.port() == at.port() && at.port() != 0
    };
    let app = std::iter::once(("inbound.app".to_owned(), app, Some(&file.inbound.listen)));
    // A service may call itself: what comes in goes to its application.
    let callees = callees
        .iter()
        .map(|callee| (format!("callees.{}.address", callee.name), &callee.target, None));
    for (field, target, inbound) in app.chain(callees) {
        let listens = |at: &SocketAddr| calls.iter().chain(inbound).any(|own| is(own, at));
        let found = match target {
            Target::Addresses(addresses) => addresses.iter().find(|at| listens(at)).copied(),
            Target::Name { host, port } if host == "localhost" => {
                Some(SocketAddr::from(([127, 0, 0, 1], *port))).filter(listens)
            }
            Target::Name { .. } => None,
        };
        if let Some(address) = found {
            return Err(ProxyConfigError::Value {
                field,
                value: address.to_string(),
                allowed: "any address but those where this proxy listens itself",
            });
        }
    }
    Ok(())
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

fn routes(field: &str, templates: &[String]) -> Result<Routes, ProxyConfigError> {
    Routes::new(templates).map_err(|bad| ProxyConfigError::Value {
        field: field.to_owned(),
        value: bad.template,
        allowed: "a template such as /pay/{id} or /files/{*rest}, that no other one contradicts",
    })
}

/// The files of a callee's TLS, and the name that its certificate must have.
fn tls_of(
    name: &str,
    file: &CalleeTlsFile,
    target: &Target,
) -> Result<(TlsFiles, String), ProxyConfigError> {
    let wrong = |field: &str, value: String, allowed| ProxyConfigError::Value {
        field: format!("callees.{name}.tls.{field}"),
        value,
        allowed,
    };
    let identity = match (&file.certificate, &file.key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (Some(_), None) | (None, Some(_)) => {
            return Err(wrong("key", String::new(), "a certificate and its key, or none of them"));
        }
    };
    let server_name = match (&file.server_name, target) {
        (Some(name), _) => name.clone(),
        (None, Target::Name { host, .. }) => host.clone(),
        (None, Target::Addresses(addresses)) => match &addresses[..] {
            [only] => only.ip().to_string(),
            _ => return Err(wrong("server-name", String::new(), "the name in the certificate")),
        },
    };
    Ok((TlsFiles { identity, trusted: Some(file.ca.clone()) }, server_name))
}
