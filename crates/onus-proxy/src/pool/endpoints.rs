//! The instances of a callee: where they are, and which one an attempt goes to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use onus::replay::Trail;
use tokio::net::lookup_host;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::PoolLimits;
use super::dial::{Dial, nothing_found};
use super::endpoint::Endpoint;
use super::error::PoolError;
use super::view::PoolView;

/// Where the instances of a callee are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// At these addresses.
    Addresses(Vec<SocketAddr>),
    /// Where this name leads, asked for again and again.
    Name {
        /// The name.
        host: String,
        /// The port of all of them.
        port: u16,
    },
}

/// The instances of a callee.
pub(super) struct Endpoints<B> {
    target: Target,
    dial: Dial,
    limits: PoolLimits,
    list: ArcSwap<Vec<Arc<Endpoint<B>>>>,
    /// Where the next attempt begins to look: everybody's turn comes.
    next: AtomicUsize,
    /// Held by whoever asks the resolver.
    resolver: Mutex<Resolved>,
}

/// What the resolver said last.
#[derive(Default)]
struct Resolved {
    /// When it gave addresses.
    good: Option<Instant>,
    /// When it did not, since then.
    bad: Option<Instant>,
}

impl<B> Endpoints<B> {
    pub(super) fn new(target: Target, dial: Dial, limits: PoolLimits) -> Self {
        let endpoints = Self {
            target,
            dial,
            limits,
            list: ArcSwap::default(),
            next: AtomicUsize::new(0),
            resolver: Mutex::default(),
        };
        if let Target::Addresses(addresses) = &endpoints.target {
            endpoints.take_over(addresses);
        }
        endpoints
    }

    /// The instance for an attempt: none to which the trail of the call leads and none that fails, as
    /// far as there are others.
    pub(super) async fn pick(&self, trail: Option<&Trail>) -> Result<Arc<Endpoint<B>>, PoolError> {
        match self.pick_known(trail) {
            Some(endpoint) => Ok(endpoint),
            None => {
                // Boxed: the future of every request has room for it else.
                let resolved = Box::pin(self.resolve(RESOLVE_AGAIN)).await;
                resolved.map_err(|source| self.unresolved(source))?;
                self.pick_known(trail).ok_or_else(|| self.unresolved(nothing_found()))
            }
        }
    }

    fn pick_known(&self, trail: Option<&Trail>) -> Option<Arc<Endpoint<B>>> {
        let list = self.list.load();
        if let [only] = &list[..] {
            return Some(only.clone());
        }
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..list.len()).map(|n| &list[first.wrapping_add(n) % list.len()]);
        // The least of these comes first; among equals, the one whose turn it is.
        let merits = |endpoint: &&Arc<Endpoint<B>>| {
            let was_tried = trail.is_some_and(|trail| trail.leads_to(endpoint.number));
            (was_tried, endpoint.is_failing())
        };
        let picked = in_turn.min_by_key(merits)?;
        if let Some(trail) = trail {
            trail.note(picked.number);
        }
        Some(picked.clone())
    }

    fn unresolved(&self, source: io::Error) -> PoolError {
        let host = match &self.target {
            Target::Addresses(_) => String::new(),
            Target::Name { host, .. } => host.clone(),
        };
        PoolError::Resolve { host, source }
    }

    /// Asks the resolver, but not within `again` of the last time. What it said last stays for a
    /// while when it fails.
    pub(super) async fn resolve(&self, again: Duration) -> io::Result<()> {
        let Target::Name { host, port } = &self.target else { return Ok(()) };
        let mut resolved = self.resolver.lock().await;
        let recent = |at: Option<Instant>| at.is_some_and(|at| at.elapsed() < again);
        if recent(resolved.bad) {
            return Err(io::Error::other("the resolver failed a moment ago"));
        }
        if recent(resolved.good) {
            return Ok(());
        }
        let mut found = lookup_host((host.as_str(), *port)).await;
        let mut addresses: Vec<_> = found.as_mut().map(Iterator::collect).unwrap_or_default();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(INSTANCES_MAX);
        if !addresses.is_empty() {
            *resolved = Resolved { good: Some(Instant::now()), bad: None };
            self.take_over(&addresses);
            return Ok(());
        }
        resolved.bad = Some(Instant::now());
        if resolved.good.is_none_or(|good| good.elapsed() > STALE_MAX) {
            self.take_over(&[]);
        }
        Err(found.err().unwrap_or_else(nothing_found))
    }

    /// Takes over where the instances are; those that are known keep their connections.
    fn take_over(&self, addresses: &[SocketAddr]) {
        let known = self.list.load();
        let same = known.iter().map(|endpoint| &endpoint.address).eq(addresses);
        if same {
            return;
        }
        let endpoint = |&address: &SocketAddr| {
            let known = known.iter().find(|endpoint| endpoint.address == address);
            known
                .cloned()
                .unwrap_or_else(|| Arc::new(Endpoint::new(address, self.dial.clone(), self.limits)))
        };
        self.list.store(Arc::new(addresses.iter().map(endpoint).collect()));
    }

    /// What there is of connections.
    pub(super) fn view(&self) -> PoolView {
        let mut view = PoolView::default();
        for endpoint in self.list.load().iter() {
            view.instances += 1;
            view.failing += usize::from(endpoint.is_failing());
            let (open, idle, waiting) = endpoint.http1.counts();
            view.connections += open;
            view.idle += idle;
            let (shared, streams, waiting_too) = endpoint.http2.counts();
            view.http2_connections += shared;
            view.streams += streams;
            view.waiting += waiting + waiting_too;
        }
        view
    }

    /// Runs once in a while.
    pub(super) fn sweep(&self) {
        for endpoint in self.list.load().iter() {
            endpoint.sweep();
        }
    }
}

/// Requests that find no address ask the resolver, all together about this often.
const RESOLVE_AGAIN: Duration = Duration::from_secs(1);

/// How long addresses stay in use that the resolver does not confirm.
const STALE_MAX: Duration = Duration::from_secs(300);

/// The most instances that are kept apart; a name with more is served by its first ones.
const INSTANCES_MAX: usize = 256;
