//! A proxy from its start to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use onus::Onus;

use crate::config::{ProxyConfig, ProxyConfigError};
use crate::inbound::Inbound;
use crate::listener;
use crate::outbound::{Callees, Outbound};
use crate::pool::{Dial, Pool, PoolLimits};

/// A proxy that runs, until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    onus: Onus,
    inbound: SocketAddr,
    outbound: SocketAddr,
    callees: Vec<(String, SocketAddr)>,
    drain: watch::Sender<bool>,
    listeners: JoinSet<()>,
}

/// Why a proxy cannot start; nothing of it runs then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ProxyConfigError),
    /// A socket cannot be had.
    #[error("listen on {address} for {what}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// For what.
        what: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl Proxy {
    /// Starts a proxy on the current runtime.
    ///
    /// # Errors
    ///
    /// What cannot be had; nothing is left half started.
    pub async fn start(config: &ProxyConfig) -> Result<Self, StartError> {
        let onus = config.onus()?;
        let listen = config.listen();
        let (inbound_socket, inbound) = bind(listen.inbound, "inbound").await?;
        let (outbound_socket, outbound) = bind(listen.outbound, "outbound").await?;
        let mut own = Vec::new();
        for callee in &config.callees {
            if let Some(address) = callee.listen {
                let bound = bind(address, &format!("callee {:?}", callee.name)).await?;
                own.push((callee.name.clone(), bound));
            }
        }
        let limits = PoolLimits::default();
        let dial = Dial { timeout: limits.connect };
        let replay = onus.replay_limits();
        let app = Pool::new(
            config.app.clone(),
            config.app_protocol,
            dial.clone(),
            limits,
            replay.clone(),
        );
        let mut callees = Callees::new();
        for callee in &config.callees {
            let (target, dial) = (callee.target.clone(), dial.clone());
            let pool = Pool::new(target, callee.protocol, dial, limits, replay.clone());
            let hosts = callee.hosts.iter().cloned();
            callees.add(&onus, &config.correlation, &callee.name, hosts, pool);
        }
        let callees = Arc::new(callees);
        let (drain, drained) = watch::channel(false);
        let mut listeners = JoinSet::new();
        let front = Inbound::new(&onus, config.correlation.clone(), app);
        listeners.spawn(listener::serve(inbound_socket, front, drained.clone()));
        let front = Outbound::new(callees.clone());
        listeners.spawn(listener::serve(outbound_socket, front, drained.clone()));
        let mut addresses = Vec::new();
        for (name, (socket, address)) in own {
            let front = Outbound::only(callees.clone(), &name);
            listeners.spawn(listener::serve(socket, front, drained.clone()));
            addresses.push((name, address));
        }
        if let Some(path) = config.switch_file() {
            listeners.spawn(onus.watch_switch_file(path));
        }
        tracing::info!(%inbound, %outbound, service = %onus.agent().service(), "onus: the proxy listens");
        Ok(Self { onus, inbound, outbound, callees: addresses, drain, listeners })
    }

    /// Where requests to the application are accepted.
    #[must_use]
    pub fn inbound(&self) -> SocketAddr {
        self.inbound
    }

    /// Where calls of the application are accepted.
    #[must_use]
    pub fn outbound(&self) -> SocketAddr {
        self.outbound
    }

    /// Where calls to callees with a listener of their own are accepted.
    #[must_use]
    pub fn callees(&self) -> &[(String, SocketAddr)] {
        &self.callees
    }

    /// The layers that the proxy hosts.
    #[must_use]
    pub fn onus(&self) -> &Onus {
        &self.onus
    }

    /// Accepts nothing more and waits until all requests have been answered.
    pub async fn drain(mut self) {
        self.drain.send_replace(true);
        while self.listeners.join_next().await.is_some() {}
    }
}

/// Listens, so that all sockets are there before anything is served.
async fn bind(address: SocketAddr, what: &str) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, what: what.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}
