//! What is measured: programs between the load and the backend.

mod envoy;
mod filters;
mod floors;
mod haproxy;
mod nginx;
mod onus;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Serialize, Serializer};

use super::connection::Protocol;
use super::process::child::Process;

pub(crate) use self::envoy::Envoy;
pub(crate) use self::filters::Filters;
pub(crate) use self::onus::{Mode, Sidecar};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Nothing in between.
    Direct,
    /// The kernel's part.
    Splice,
    /// hyper and a pool.
    Bare,
    /// Onus in front of an application, mode enforce.
    Onus,
    /// The same in mode off.
    OnusOff,
    /// Onus between an application and its callee, mode enforce.
    OnusOutbound,
    Envoy,
    /// The same in another process, for how much two that are equal differ.
    EnvoyAgain,
    /// The same with filters.
    EnvoyWith(Filters),
    Haproxy,
    Nginx,
}

impl Subject {
    /// Who is compared as a sidecar.
    pub(crate) const PEERS: [Self; 9] = [
        Self::Direct,
        Self::Splice,
        Self::Bare,
        Self::Onus,
        Self::OnusOff,
        Self::OnusOutbound,
        Self::Envoy,
        Self::Haproxy,
        Self::Nginx,
    ];

    /// Who is compared to know what filters cost an Envoy.
    const FILTERS: [Self; 8] = [
        Self::EnvoyAgain,
        Self::EnvoyWith(Filters::EmptyModule),
        Self::EnvoyWith(Filters::ModuleInbound),
        Self::EnvoyWith(Filters::ModuleOutbound),
        Self::EnvoyWith(Filters::ModuleAttempts),
        Self::EnvoyWith(Filters::EmptyPlugin),
        Self::EnvoyWith(Filters::PluginInbound),
        Self::EnvoyWith(Filters::PluginOutbound),
    ];

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::PEERS.into_iter().chain(Self::FILTERS)
    }

    /// By which it is chosen, and found in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Splice => "splice",
            Self::Bare => "bare-hyper",
            Self::Onus => "onus",
            Self::OnusOff => "onus-off",
            Self::OnusOutbound => "onus-outbound",
            Self::Envoy => "envoy",
            Self::EnvoyAgain => "envoy-again",
            Self::EnvoyWith(Filters::EmptyModule) => "empty-module",
            Self::EnvoyWith(Filters::ModuleInbound) => "module-inbound",
            Self::EnvoyWith(Filters::ModuleOutbound) => "module-outbound",
            Self::EnvoyWith(Filters::ModuleAttempts) => "module-attempts",
            Self::EnvoyWith(Filters::EmptyPlugin) => "empty-plugin",
            Self::EnvoyWith(Filters::PluginInbound) => "plugin-inbound",
            Self::EnvoyWith(Filters::PluginOutbound) => "plugin-outbound",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
        }
    }

    /// The filters of an Envoy that has some.
    fn filters(self) -> Option<Filters> {
        match self {
            Self::EnvoyWith(filters) => Some(filters),
            Self::Direct
            | Self::Splice
            | Self::Bare
            | Self::Onus
            | Self::OnusOff
            | Self::OnusOutbound
            | Self::Envoy
            | Self::EnvoyAgain
            | Self::Haproxy
            | Self::Nginx => None,
        }
    }

    /// Whether it can pass on what is spoken on both of its sides.
    pub(crate) fn speaks(self, protocol: Protocol) -> bool {
        match (self, protocol) {
            // This nginx speaks HTTP/1.1 to its callees only.
            (Self::Nginx, Protocol::Http2) => false,
            (
                Self::Direct
                | Self::Splice
                | Self::Bare
                | Self::Onus
                | Self::OnusOff
                | Self::OnusOutbound
                | Self::Envoy
                | Self::EnvoyAgain
                | Self::EnvoyWith(_)
                | Self::Haproxy
                | Self::Nginx,
                Protocol::Http1 | Protocol::Http2,
            ) => true,
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Where programs are found.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) itself: PathBuf,
    pub(crate) onus: PathBuf,
    pub(crate) envoy: Option<Envoy>,
    pub(crate) haproxy: Option<PathBuf>,
    pub(crate) nginx: Option<PathBuf>,
}

/// A subject that runs.
#[derive(Debug)]
pub(crate) struct Running {
    /// Nothing runs where nothing is in between.
    process: Option<Process>,
    http1: SocketAddr,
    http2: SocketAddr,
}

impl Running {
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub(crate) fn address(&self, protocol: Protocol) -> SocketAddr {
        match protocol {
            Protocol::Http1 => self.http1,
            Protocol::Http2 => self.http2,
        }
    }
}

/// Starts a subject in front of `backend`; `None` where its program is not there.
pub(crate) async fn start(
    subject: Subject,
    programs: &Programs,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Option<Running>> {
    let Programs { itself, onus, envoy, haproxy, nginx } = programs;
    Ok(match subject {
        Subject::Direct => Some(Running { process: None, http1: backend, http2: backend }),
        Subject::Splice => Some(floors::start("splice", itself, backend, folder).await?),
        Subject::Bare => Some(floors::start("bare", itself, backend, folder).await?),
        Subject::Onus => Some(onus::inbound("onus", onus, Mode::Enforce, backend, folder).await?),
        Subject::OnusOff => {
            Some(onus::inbound("onus-off", onus, Mode::Off, backend, folder).await?)
        }
        Subject::OnusOutbound => Some(onus::outbound(onus, backend, folder).await?),
        Subject::Envoy | Subject::EnvoyAgain | Subject::EnvoyWith(_) => match envoy {
            Some(envoy) => {
                let (name, filters) = (subject.name(), subject.filters());
                Some(envoy::start(name, envoy, filters, backend, folder).await?)
            }
            None => None,
        },
        Subject::Haproxy => match haproxy {
            Some(program) => Some(haproxy::start(program, backend, folder).await?),
            None => None,
        },
        Subject::Nginx => match nginx {
            Some(program) => Some(nginx::start(program, backend, folder).await?),
            None => None,
        },
    })
}

/// What a program says of its version, in one line.
pub(crate) fn version(program: &Path, argument: &str) -> String {
    let said = Command::new(program).arg(argument).output();
    let Ok(said) = said else { return "does not run".to_owned() };
    let text = [said.stdout, said.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.chars().any(|char| char.is_ascii_digit()));
    // Some begin with where they were found, which is nobody's business.
    line.unwrap_or("says nothing").replace(&*program.to_string_lossy(), "").trim().to_owned()
}
