//! Services that know nothing of Onus, with a sidecar beside each.

use std::fmt::Write as _;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use onus::{Annotation, CallError, Mode, Share};

use crate::policy;
use crate::protocol::Protocol;
use crate::topology::{CalleeConfig, ServiceConfig};

/// Who starts sidecars.
pub trait Sidecars {
    /// Starts one beside a service. It runs for as long as `self` is there.
    fn start(&mut self, beside: Beside<'_>) -> impl Future<Output = io::Result<Sidecar>>;
}

/// A service that gets a sidecar.
#[derive(Clone, Debug)]
pub struct Beside<'a> {
    /// The service.
    pub service: &'a ServiceConfig,
    /// How it talks.
    pub protocol: Protocol,
    /// Where it listens.
    pub app: SocketAddr,
    /// Whom it calls, and where the sidecar finds them.
    pub callees: Vec<(&'a CalleeConfig, SocketAddr)>,
}

impl Beside<'_> {
    /// The configuration of the sidecar, in YAML, listening on these ports of loopback.
    #[must_use]
    pub fn configuration(&self, inbound: u16, outbound: u16) -> String {
        let service = self.service;
        let mut yaml = format!(
            "service: {}\nmode: {}\nsilent-claims: {}\n\
             inbound: {{listen: \"127.0.0.1:{inbound}\", app: \"{}\"}}\n\
             outbound: {{listen: \"127.0.0.1:{outbound}\"}}\n\
             admin: {{listen: \"127.0.0.1:0\"}}\n",
            service.name,
            mode(service.mode_outbound()),
            service.silent_claims,
            self.app,
        );
        if self.callees.iter().any(|(callee, _)| !callee.replayable) {
            // No byte of content is kept: requests with some cannot be sent again.
            let bytes = self.protocol.body(&[]).len();
            let _ = writeln!(yaml, "replay: {{per-request: {bytes}B}}");
        }
        if !self.callees.is_empty() {
            yaml.push_str("callees:\n");
        }
        for (callee, address) in &self.callees {
            let _ = writeln!(yaml, "  {}:\n    address: \"{address}\"", callee.name);
            retry(&mut yaml, callee);
        }
        yaml
    }
}

fn retry(yaml: &mut String, callee: &CalleeConfig) {
    let (base, max) = policy::BACKOFF;
    let _ = write!(
        yaml,
        "    retry: {{attempts: {}, no-gate: true, no-probes: true, unsafe-methods: false, \
         backoff-base: {}ms, backoff-max: {}ms, errors: [{}]",
        callee.attempts,
        base.as_millis(),
        max.as_millis(),
        errors(callee),
    );
    match callee.budget_percent {
        Some(percent) => {
            let _ = write!(
                yaml,
                ", budget: {{percent: {percent}, from-calls: true, min-per-second: 0}}"
            );
        }
        None => yaml.push_str(", no-budget: true"),
    }
    if let Some(timeout) = callee.per_try_timeout {
        let _ = write!(yaml, ", per-try-timeout: {}ms", timeout.as_millis());
    }
    yaml.push_str("}\n");
    match callee.annotation {
        None => {}
        Some(Annotation::Required) => yaml.push_str("    annotation: required\n"),
        Some(Annotation::Optional) => yaml.push_str("    annotation: optional\n"),
    }
    if let Some(layer) = callee.retry_layer {
        let attempts = layer.attempts;
        let _ = writeln!(yaml, "    retries: {{made-by: below, attempts: {attempts}}}");
    }
}

/// All errors that the callee's policy retries, one by one.
fn errors(callee: &CalleeConfig) -> String {
    let replies = (400..=599).map(CallError::Http).chain((1..=16).map(CallError::Grpc));
    let errors = replies.chain(CallError::TRANSPORT).filter(|&error| callee.errors.contains(error));
    let words: Vec<_> = errors.map(|error| error.to_string()).collect();
    words.join(", ")
}

fn mode(mode: Mode) -> String {
    match mode {
        Mode::Off | Mode::Observe => mode.as_str().to_owned(),
        Mode::Enforce(share) if share == Share::ALL => mode.as_str().to_owned(),
        Mode::Enforce(share) => format!("enforce {}%", share.basis_points() / 100),
    }
}

/// Where a sidecar listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sidecar {
    /// For requests to its service.
    pub inbound: SocketAddr,
    /// For calls of its service.
    pub outbound: SocketAddr,
}
