//! What the analysis is told at the start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use onus_promql::Endpoint;

use crate::access::Grant;
use crate::shard::Shard;
use crate::tls::TlsFiles;

/// What the analysis is told at the start. Everything has a default but the folder of the store.
#[derive(Clone, Debug)]
pub struct AnalysisConfig {
    /// Where it listens (default 127.0.0.1:7480); port 0 for any.
    pub listen: SocketAddr,
    /// The folder of the store; made if it is not there.
    pub data: PathBuf,
    /// How often counts become evidence (default 1 min, as the protocol counts).
    pub minute: Duration,
    /// Who may do what; nobody is asked where there is none, which needs a loopback address or
    /// [`Self::open`].
    pub grants: Vec<Grant>,
    /// Whether everybody who reaches it may do everything.
    pub open: bool,
    /// A file of overrides that is followed; it wins over those that are set by request.
    pub overrides: Option<PathBuf>,
    /// The server's certificate; without it, it talks without TLS.
    pub tls: Option<TlsFiles>,
    /// The store that evidence is read from, where agents are scraped and do not report.
    pub promql: Option<PromqlConfig>,
    /// Which of several analyses this one is.
    pub shard: Option<Shard>,
    /// The bounds of what is remembered.
    pub limits: Limits,
}

/// A PromQL store that scrapes the agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromqlConfig {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The file with the token for it.
    pub token_file: Option<PathBuf>,
    /// How long after its end a minute is read, so that every scrape of it is in the store
    /// (default 1 min).
    pub delay: Duration,
    /// Whether the recording rules of `docs/prometheus/onus-rules.yaml` are in force: then a
    /// minute costs the store no more than a look-up. They count whole minutes.
    pub recorded: bool,
}

/// The bounds of what the analysis remembers and takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Edges kept apart (default 250,000); further ones share one edge per caller, `__other__`.
    pub edges: usize,
    /// Edges of one caller kept apart (default 10,000).
    pub edges_per_service: usize,
    /// Processes whose reports are told apart (default 100,000); those that were silent longest
    /// make room.
    pub instances: usize,
    /// The most edges and procedures in one report (default 10,000).
    pub report_rows: usize,
    /// The most bytes of one report (default 8 MiB).
    pub report_bytes: usize,
    /// Reports that wait to be stored (default 1,024); further ones are asked to come again.
    pub waiting: usize,
    /// How long minutes with failures are kept (default 7 days).
    pub windows: Duration,
    /// How long an edge is kept that nobody reports (default 30 days).
    pub silent_edges: Duration,
}

impl AnalysisConfig {
    /// The configuration with its store in `data`, and every default.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7480)),
            data: data.into(),
            minute: Duration::from_secs(60),
            grants: Vec::new(),
            open: false,
            overrides: None,
            tls: None,
            promql: None,
            shard: None,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            edges: 250_000,
            edges_per_service: 10_000,
            instances: 100_000,
            report_rows: 10_000,
            report_bytes: 8 * 1024 * 1024,
            waiting: 1_024,
            windows: Duration::from_secs(7 * 86_400),
            silent_edges: Duration::from_secs(30 * 86_400),
        }
    }
}
