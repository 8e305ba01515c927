//! Onus as its users run it: `onus proxy -c onus.yaml`, with one worker.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::Running;
use crate::peers::load::call::AUTHORITY;
use crate::peers::process::child::{Process, free_address, written};
use crate::peers::process::cpu;

/// How far ownership reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Enforce,
    Off,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            // YAML 1.1 reads a bare `off` as a boolean.
            Self::Off => "\"off\"",
        }
    }
}

/// A sidecar that runs.
#[derive(Debug)]
pub(crate) struct Sidecar {
    pub(crate) process: Process,
    pub(crate) inbound: SocketAddr,
    pub(crate) outbound: SocketAddr,
}

impl Sidecar {
    /// Starts a sidecar of `service` beside `app`; `callees` is more of its configuration.
    pub(crate) async fn start(
        name: &'static str,
        program: &Path,
        mode: Mode,
        app: SocketAddr,
        callees: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let (inbound, outbound) = (free_address()?, free_address()?);
        let mode = mode.word();
        let text = format!(
            "service: {name}\nmode: {mode}\nworkers: 1\n\
             inbound: {{listen: \"{inbound}\", app: \"{app}\"}}\n\
             outbound: {{listen: \"{outbound}\"}}\n\
             admin: {{listen: \"127.0.0.1:0\"}}\n{callees}"
        );
        let config = written(folder, &format!("{name}.yaml"), &text)?;
        let mut command = Command::new(program);
        command.args(["proxy", "--config"]).arg(config);
        let mut process = Process::start(name, command, cpu::PROXY, folder)?;
        process.listens(inbound).await?;
        process.listens(outbound).await?;
        Ok(Self { process, inbound, outbound })
    }
}

/// In front of the backend, which is its application.
pub(super) async fn inbound(
    name: &'static str,
    program: &Path,
    mode: Mode,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Running> {
    let sidecar = Sidecar::start(name, program, mode, backend, "", folder).await?;
    let (process, listen) = (Some(sidecar.process), sidecar.inbound);
    Ok(Running { process, http1: listen, http2: listen })
}

/// Between an application, which the load plays, and the backend, which is its callee.
pub(super) async fn outbound(
    program: &Path,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Running> {
    let callees = format!("callees: {{{AUTHORITY}: {{address: \"{backend}\"}}}}\n");
    let name = "onus-outbound";
    let sidecar = Sidecar::start(name, program, Mode::Enforce, backend, &callees, folder).await?;
    let (process, listen) = (Some(sidecar.process), sidecar.outbound);
    Ok(Running { process, http1: listen, http2: listen })
}
