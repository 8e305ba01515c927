//! The client: sends requests to the root and keeps what it sees.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use onus::{CallOutcome, CalleeClaim, ErrorSet, Onus};
use tokio::task::JoinSet;

use crate::callee::Callee;
use crate::carried::Carried;
use crate::error::DemoError;
use crate::key::Key;
use crate::protocol::{Protocol, Status};
use crate::topology::CalleeConfig;

/// How much is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Requests in all.
    pub requests: u64,
    /// Requests at a time.
    pub concurrency: u64,
    /// How long it takes until so many are under way. Requests that wait for the same timeouts
    /// would otherwise all need the machine at the same moments, and be late.
    pub ramp: Duration,
    /// How long the client waits for an answer once it has a connection.
    pub timeout: Option<Duration>,
}

/// What a client has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests that ended with an error.
    pub client_errors: u64,
    /// Which errors they were, and how many of each.
    pub seen: Vec<(SeenError, u64)>,
}

/// An error as a client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenError {
    /// The status of the answer; `None` where none came.
    pub status: Option<Status>,
    /// What was read of the answer.
    pub read: CalleeClaim,
    /// The service that failed first, and how many hops below the one that answered it is.
    pub origin: Option<(String, u8)>,
}

/// What an answer says about retrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPermission {
    /// A retry may help.
    Open,
    /// A retry was made below, or deliberately refused.
    Closed,
    /// Nothing.
    Unsaid,
}

impl Load {
    /// So many requests, so many of them at a time from the start, each as long as it takes.
    #[must_use]
    pub const fn new(requests: u64, concurrency: u64) -> Self {
        Self { requests, concurrency, ramp: Duration::ZERO, timeout: None }
    }
}

impl Report {
    /// The error that was seen most.
    #[must_use]
    pub fn most_seen(&self) -> Option<(&SeenError, u64)> {
        self.seen.iter().map(|(seen, times)| (seen, *times)).max_by_key(|(_, times)| *times)
    }

    fn add(&mut self, seen: SeenError, times: u64) {
        self.client_errors += times;
        match self.seen.iter_mut().find(|(known, _)| *known == seen) {
            Some((_, known)) => *known += times,
            None => self.seen.push((seen, times)),
        }
    }
}

impl SeenError {
    const SILENCE: Self = Self { status: None, read: CalleeClaim::Silent, origin: None };

    /// Whether the answer leaves a retry open.
    #[must_use]
    pub fn retry(&self) -> RetryPermission {
        match self.read {
            CalleeClaim::Missing | CalleeClaim::Silent => RetryPermission::Unsaid,
            read @ CalleeClaim::Reply(_) if read.is_unclaimed() => RetryPermission::Closed,
            CalleeClaim::Reply(_) => RetryPermission::Open,
        }
    }
}

impl fmt::Display for SeenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, self.status) {
            (Some((service, 0)), _) => write!(f, "failed at {service} itself")?,
            (Some((service, 1)), _) => write!(f, "failed at {service}, 1 hop down")?,
            (Some((service, hops)), _) => write!(f, "failed at {service}, {hops} hops down")?,
            (None, Some(status)) => write!(f, "failed with {status}")?,
            (None, None) => f.write_str("no answer")?,
        }
        match self.retry() {
            RetryPermission::Open => f.write_str(": retry open"),
            RetryPermission::Closed => f.write_str(": retry closed"),
            RetryPermission::Unsaid => Ok(()),
        }
    }
}

/// Sends `load` to `entry`. The client only looks: it has no retry policy and observes.
pub(crate) async fn send(
    entry: &str,
    protocol: Protocol,
    address: SocketAddr,
    load: Load,
) -> Result<Report, DemoError> {
    let refused = |source| DemoError::Config { service: CLIENT.into(), source };
    // It would try again, were there an error to try again after. Only an answer on which that
    // depends is looked into up to its trailers, where gRPC may have the claim.
    let config = CalleeConfig {
        attempts: 2,
        errors: ErrorSet::EMPTY,
        client_timeout: load.timeout,
        ..CalleeConfig::new(entry)
    };
    let builder = Onus::builder(CLIENT).retry(entry, config.policy());
    let onus = builder.build().map_err(refused)?;
    let callee = Callee::new(&onus, &config, protocol, address);
    let sent = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    let concurrency = load.concurrency.min(load.requests);
    for position in 0..concurrency {
        let delay = load.ramp.mul_f64(position as f64 / concurrency as f64);
        let client = client(callee.clone(), sent.clone(), load.requests);
        clients.spawn(async move {
            tokio::time::sleep(delay).await;
            client.await
        });
    }
    let mut report = Report::default();
    for part in clients.join_all().await {
        for (seen, times) in part.seen {
            report.add(seen, times);
        }
    }
    Ok(report)
}

async fn client(callee: Callee, sent: Arc<AtomicU64>, requests: u64) -> Report {
    let mut report = Report::default();
    let one_more = |sent: u64| (sent < requests).then_some(sent + 1);
    while let Ok(number) = sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
        if let Err(seen) = request(&callee, Key::of_request(number)).await {
            report.add(seen, 1);
        }
    }
    report
}

async fn request(callee: &Callee, key: Key) -> Result<(), SeenError> {
    let Ok(response) = callee.send(&Carried::of(key)).await else { return Err(SeenError::SILENCE) };
    let (head, body) = response.into_parts();
    let Ok(body) = body.collect().await else { return Err(SeenError::SILENCE) };
    let status = callee.status(&head, body.trailers());
    if status.is_ok() {
        return Ok(());
    }
    let outcome = head.extensions.get::<CallOutcome>();
    let read = outcome.map_or(CalleeClaim::Missing, |outcome| outcome.read);
    // The layer counts hops from the client, people count them from the service that answered.
    let origin = outcome.and_then(|outcome| outcome.origin.as_ref());
    let origin = origin.map(|origin| (origin.service.to_string(), origin.hops.saturating_sub(1)));
    Err(SeenError { status: Some(status), read, origin })
}

const CLIENT: &str = "client";
