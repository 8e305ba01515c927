//! Where a name leads, asked for again and again.
//!
//! The system's resolver takes a thread for each question, cannot be stopped, and is silent for many
//! seconds where its servers are. So there is one question at a time, which outlives whoever asked
//! it, and nobody waits for its answer longer than for a connection.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// A name, and what the resolver has said of it.
pub(super) struct Resolver {
    lookup: Lookup,
    host: String,
    port: u16,
    /// How long anybody waits for an answer.
    patience: Duration,
    /// Held by whoever waits for an answer.
    said: Mutex<Said>,
    failed: AtomicU64,
    left_out: AtomicUsize,
}

/// Asks where a name leads.
pub(super) type Lookup = Box<dyn Fn(String, u16) -> Asked + Send + Sync>;
pub(super) type Asked = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// The resolver of the system.
pub(super) fn system() -> Lookup {
    Box::new(|host, port| {
        Box::pin(async move { Ok(lookup_host((host.as_str(), port)).await?.collect()) })
    })
}

/// What the resolver said last.
#[derive(Default)]
struct Said {
    /// When it gave addresses.
    good: Option<Instant>,
    /// When it did not, since then, and why.
    bad: Option<(Instant, io::ErrorKind, String)>,
    /// What it has not answered yet.
    question: Option<Question>,
}

struct Question {
    since: Instant,
    answer: JoinHandle<io::Result<Vec<SocketAddr>>>,
}

impl Resolver {
    pub(super) fn new(lookup: Lookup, host: String, port: u16, patience: Duration) -> Self {
        let (said, failed, left_out) = Default::default();
        Self { lookup, host, port, patience, said, failed, left_out }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Asks, but not within `again` of the last time, and hands on the addresses that are to be used
    /// from now on. What was said last stays for a while when nothing is said.
    pub(super) async fn ask(
        &self,
        again: Duration,
        hand_on: impl FnOnce(&[SocketAddr]),
    ) -> io::Result<()> {
        let mut said = self.said.lock().await;
        if let Some((at, kind, why)) = &said.bad
            && at.elapsed() < again
        {
            return Err(io::Error::new(*kind, why.clone()));
        }
        if said.good.is_some_and(|at| at.elapsed() < again) {
            return Ok(());
        }
        let error = match self.answer(&mut said.question).await {
            Ok(addresses) => {
                if said.bad.is_some() {
                    tracing::info!(host = self.host, "onus: the resolver has addresses again");
                }
                *said = Said { good: Some(Instant::now()), ..Said::default() };
                hand_on(&addresses);
                return Ok(());
            }
            Err(error) => error,
        };
        if said.bad.replace((Instant::now(), error.kind(), error.to_string())).is_none() {
            tracing::warn!(host = self.host, %error, "onus: the resolver has no address");
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        if said.good.is_none_or(|good| good.elapsed() > STALE_MAX) {
            hand_on(&[]);
        }
        Err(error)
    }

    /// The answer to the question under way, or to another one; at least one address, each once.
    async fn answer(&self, question: &mut Option<Question>) -> io::Result<Vec<SocketAddr>> {
        let asked = question.get_or_insert_with(|| Question {
            since: Instant::now(),
            answer: tokio::spawn((self.lookup)(self.host.clone(), self.port)),
        });
        let Ok(found) = timeout_at(asked.since + self.patience, &mut asked.answer).await else {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the resolver does not answer"));
        };
        *question = None;
        let mut addresses = found.map_err(io::Error::other)??;
        addresses.sort_unstable();
        addresses.dedup();
        self.left_out.store(addresses.len().saturating_sub(INSTANCES_MAX), Ordering::Relaxed);
        addresses.truncate(INSTANCES_MAX);
        match addresses.is_empty() {
            true => Err(nothing_found()),
            false => Ok(addresses),
        }
    }

    /// Questions that brought no address.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Addresses beyond those that are used.
    pub(super) fn left_out(&self) -> usize {
        self.left_out.load(Ordering::Relaxed)
    }
}

/// The resolver found nothing, which some systems do not call an error.
pub(super) fn nothing_found() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the name has no address")
}

/// How long addresses stay in use that the resolver does not confirm.
pub(super) const STALE_MAX: Duration = Duration::from_secs(300);

/// The most instances that are kept apart; a name with more is served by its first ones.
pub(super) const INSTANCES_MAX: usize = 256;
