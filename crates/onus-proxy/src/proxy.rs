//! A proxy from its start to its end.

use std::fmt;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use hyper::body::Incoming;
use onus::Onus;
use onus::report::Reporter;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::admin::Admin;
use crate::busy::Busy;
use crate::config::{DrainFile, ProxyConfig, ProxyConfigError, Span};
use crate::connection::Server;
use crate::inbound::Inbound;
use crate::listener::{self, Front, ListenerCounts, Stage};
use crate::outbound::{Callees, Outbound};
use crate::pool::{Dial, Pool, Target};
use crate::tail::AccessLog;
use crate::tls::ServerTls;

/// A proxy that runs, until it is dropped.
pub struct Proxy {
    state: Arc<State>,
    addresses: Addresses,
    inbound: Listeners,
    outbound: Listeners,
    /// The admin interface, and what follows files.
    others: Listeners,
    reporter: Option<Reporter>,
}

/// What all parts of a proxy share.
pub(crate) struct State {
    pub(crate) onus: Onus,
    pub(crate) log: Arc<AccessLog>,
    pub(crate) config: ArcSwap<ProxyConfig>,
    pub(crate) callees: ArcSwap<Callees>,
    /// Where calls of the application come in.
    calls: Arc<[SocketAddr]>,
    pub(crate) app: ArcSwap<Pool<Incoming>>,
    /// Header fields of a request.
    pub(crate) fields_max: usize,
    pub(crate) inbound: Arc<ListenerCounts>,
    pub(crate) outbound: Arc<ListenerCounts>,
    pub(crate) tunnels: Busy,
    /// How far the inbound side has come to its end.
    stage: watch::Sender<Stage>,
    /// When the inbound side ends, or has ended, to accept others; unset while nobody has told it to.
    ends: OnceLock<Instant>,
    pub(crate) reloads: AtomicU64,
    pub(crate) reloads_refused: AtomicU64,
    /// Whether the last configuration was refused.
    pub(crate) is_refused: AtomicBool,
}

/// Where a proxy listens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Addresses {
    inbound: SocketAddr,
    outbound: SocketAddr,
    admin: SocketAddr,
    callees: Vec<(String, SocketAddr)>,
}

impl Addresses {
    /// Where calls of the application come in.
    fn of_calls(&self) -> impl Iterator<Item = SocketAddr> {
        let own = self.callees.iter().map(|(_, address)| *address);
        [self.outbound].into_iter().chain(own)
    }
}

/// Listeners that come to their end together.
struct Listeners {
    stage: watch::Sender<Stage>,
    tasks: JoinSet<()>,
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
        let tls = config.server_tls()?.map(Arc::new);
        let listen = config.listen();
        // All sockets are there before anything is served.
        let inbound = bind(listen.inbound, "inbound").await?;
        let outbound = bind(listen.outbound, "outbound").await?;
        let admin = bind(listen.admin, "admin").await?;
        let mut own = Vec::new();
        for callee in &config.callees {
            if let Some(address) = callee.listen {
                let bound = bind(address, &format!("callee {:?}", callee.name)).await?;
                own.push((callee.name.clone(), bound));
            }
        }
        let addresses = Addresses {
            inbound: inbound.1,
            outbound: outbound.1,
            admin: admin.1,
            callees: own.iter().map(|(name, (_, address))| (name.clone(), *address)).collect(),
        };
        let calls: Arc<[_]> = addresses.of_calls().collect();
        let log = AccessLog::new(onus.agent().service());
        let app = ArcSwap::from_pointee(application(config, &addresses, &onus, &log));
        let state = Arc::new(State {
            callees: ArcSwap::from_pointee(Callees::of(config, &onus, &calls, &log, None)?),
            calls,
            config: ArcSwap::from_pointee(config.clone()),
            onus,
            log,
            app,
            fields_max: config.server_limits().headers,
            inbound: Arc::default(),
            outbound: Arc::default(),
            tunnels: Busy::default(),
            stage: watch::Sender::new(Stage::Serving),
            ends: OnceLock::new(),
            reloads: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        });
        let reporter = config.report(&state.onus)?;
        let admin_front = Admin::new(&state, reporter.as_ref());
        let mut proxy = Self {
            state: state.clone(),
            addresses,
            inbound: Listeners::new(state.stage.clone()),
            outbound: Listeners::new(watch::Sender::new(Stage::Serving)),
            others: Listeners::new(watch::Sender::new(Stage::Serving)),
            reporter,
        };
        let [forwarding, outbound_forwarding] = config.forwarding();
        let front = Inbound::new(&state, forwarding);
        let tls_server = Arc::new(Server::new(config.server_limits(), tls.clone()));
        proxy.inbound.serve(inbound.0, front, &tls_server, &state.inbound);
        let server = Arc::new(Server::new(config.server_limits(), None));
        let calls = Outbound::new(&state, outbound_forwarding);
        proxy.outbound.serve(outbound.0, calls.clone(), &server, &state.outbound);
        for (name, (socket, _)) in own {
            let front = calls.only(&name);
            proxy.outbound.serve(socket, front, &server, &state.outbound);
        }
        let admin_server = Arc::new(Server::new(config.server_limits().of_admin(), None));
        proxy.others.serve(admin.0, admin_front, &admin_server, &Arc::default());
        proxy.others.tasks.spawn(follow_certificates(state.clone(), tls));
        if let Some(path) = config.switch_file() {
            proxy.others.tasks.spawn(state.onus.watch_switch_file(path));
        }
        let Addresses { inbound, outbound, admin, .. } = &proxy.addresses;
        let service = &**state.onus.agent().service();
        tracing::info!(service, %inbound, %outbound, %admin, "onus: the proxy listens");
        Ok(proxy)
    }

    /// Where requests to the application are accepted.
    #[must_use]
    pub fn inbound(&self) -> SocketAddr {
        self.addresses.inbound
    }

    /// Where calls of the application are accepted.
    #[must_use]
    pub fn outbound(&self) -> SocketAddr {
        self.addresses.outbound
    }

    /// Where the admin interface is.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.addresses.admin
    }

    /// Where calls to callees with a listener of their own are accepted.
    #[must_use]
    pub fn callees(&self) -> &[(String, SocketAddr)] {
        &self.addresses.callees
    }

    /// The layers that the proxy hosts.
    #[must_use]
    pub fn onus(&self) -> &Onus {
        &self.state.onus
    }

    /// Takes another configuration over. Budgets, classes, counters and connections last unless
    /// their own settings are others; a request that is under way keeps to what it began with.
    ///
    /// # Errors
    ///
    /// What cannot be meant, or needs a restart; what was in force stays in force.
    pub fn reload(&self, config: &ProxyConfig) -> Result<(), ProxyConfigError> {
        let state = &self.state;
        let before = state.config.load_full();
        let taken = before.refuse_restart(config).and_then(|()| {
            let (known, calls) = (state.callees.load(), &state.calls);
            let before: Option<(&ProxyConfig, &Callees)> = Some((&before, &known));
            let callees = Callees::of(config, &state.onus, calls, &state.log, before)?;
            state.onus.reconfigure(config.builder()?)?;
            Ok(callees)
        });
        self.refused(taken.is_err());
        state.callees.store(Arc::new(taken?));
        if before.pool_limits() != config.pool_limits() {
            let app = application(config, &self.addresses, &state.onus, &state.log);
            state.app.store(Arc::new(app));
        }
        state.config.store(Arc::new(config.clone()));
        tracing::info!("onus: another configuration is in force");
        Ok(())
    }

    /// Counts a configuration that was taken over or refused, also one that cannot be read at all.
    pub(crate) fn refused(&self, is_refused: bool) {
        let state = &self.state;
        state.is_refused.store(is_refused, Ordering::Relaxed);
        let count = if is_refused { &state.reloads_refused } else { &state.reloads };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends: says that it is not ready, then accepts no further connection of others, answers what
    /// is under way or comes over connections that are there, each of which ends with an answer or
    /// when it has had no request for a while, and serves the calls of the application until that is
    /// gone or has made none for a second; all of it within the limit. Then it reports the last
    /// counts, which takes 5 s at most. Whether nothing had to be cut off.
    pub async fn drain(mut self) -> bool {
        let state = self.state.clone();
        // Somebody may have begun with it before.
        let ends = state.end().max(Instant::now());
        let config = state.config.load_full();
        let &DrainFile { idle: Span(idle), limit: Span(limit), .. } = config.drain();
        let drained = async {
            // Only the inbound side tells its clients that it ends: the application still calls.
            self.inbound.ended().await;
            state.tunnels.idle().await;
            tokio::select! {
                () = gone(&config.app) => {}
                () = state.outbound.requests.quiet(QUIET) => {}
            }
            self.outbound.stage.send_replace(Stage::Draining { idle });
            self.outbound.ended().await;
        };
        let all = timeout_at(ends + limit, drained).await.is_ok();
        if let Some(reporter) = self.reporter.take() {
            reporter.finish().await;
        }
        all
    }
}

impl State {
    /// Whether it takes part in serving, as far as others should know.
    pub(crate) fn is_ready(&self) -> bool {
        self.ends.get().is_none()
    }

    /// Says from now on that it is not ready, and lets the inbound side end after the delay of the
    /// configuration; whoever asks for it again changes nothing. When that side ends.
    pub(crate) fn end(&self) -> Instant {
        *self.ends.get_or_init(|| {
            let config = self.config.load();
            let &DrainFile { delay: Span(delay), idle: Span(idle), .. } = config.drain();
            let (ends, stage) = (Instant::now() + delay, self.stage.clone());
            tokio::spawn(async move {
                sleep_until(ends).await;
                stage.send_replace(Stage::Draining { idle });
            });
            tracing::info!("onus: the proxy drains");
            ends
        })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Listeners {
    fn new(stage: watch::Sender<Stage>) -> Self {
        Self { stage, tasks: JoinSet::new() }
    }

    fn serve<F: Front>(
        &mut self,
        socket: TcpListener,
        front: F,
        server: &Arc<Server>,
        counts: &Arc<ListenerCounts>,
    ) {
        let (server, counts, stage) = (server.clone(), counts.clone(), self.stage.subscribe());
        self.tasks.spawn(listener::serve(socket, front, server, counts, stage));
    }

    /// Ready when all listeners and their connections have ended.
    async fn ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Connections to the application.
fn application(
    config: &ProxyConfig,
    addresses: &Addresses,
    onus: &Onus,
    log: &Arc<AccessLog>,
) -> Pool<Incoming> {
    let limits = config.pool_limits();
    let own = addresses.of_calls().chain([addresses.inbound]).collect();
    let dial = Dial { timeout: limits.connect, tls: None, own };
    let (target, protocol) = (config.app.clone(), config.app_protocol);
    Pool::new("app", log, target, protocol, dial, limits, onus.replay_limits().clone())
}

/// Reads certificates anew whose files have changed, as long as the proxy runs.
async fn follow_certificates(state: Arc<State>, tls: Option<Arc<ServerTls>>) {
    loop {
        sleep(FOLLOW_EVERY).await;
        let (state, tls) = (state.clone(), tls.clone());
        let read = move || {
            if let Some(tls) = tls {
                tls.follow();
            }
            state.callees.load().follow_certificates();
        };
        // Files may be slow.
        let _ = tokio::task::spawn_blocking(read).await;
    }
}

/// Ready when the application does not listen any more: it makes no further calls. Never where it did
/// not listen before: it may be one that only calls.
async fn gone(app: &Target) {
    if !listens(app).await {
        return pending().await;
    }
    while listens(app).await {
        sleep(LOOK_AGAIN).await;
    }
}

async fn listens(app: &Target) -> bool {
    let reached = match app {
        Target::Addresses(addresses) => TcpStream::connect(&addresses[..]).await,
        Target::Name { host, port } => TcpStream::connect((host.as_str(), *port)).await,
    };
    reached.is_ok()
}

/// Listens, so that a port that is taken is known before anything is served.
async fn bind(address: SocketAddr, what: &str) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, what: what.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// An application that stays, and has called nobody for so long, is not waited for: the sidecar
/// alone ends.
const QUIET: Duration = Duration::from_secs(1);

/// How often it is looked whether the application is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// How often it is looked whether certificates have changed.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
