//! The instances of a callee: where they are, and which one an attempt goes to.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use onus::replay::Trail;
use tokio::net::lookup_host;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

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
    lookup: Lookup,
    lookups_failed: AtomicU64,
}

/// Asks where a name leads.
type Lookup = Box<dyn Fn(String, u16) -> Asked + Send + Sync>;
type Asked = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

fn system() -> Lookup {
    Box::new(|host, port| {
        Box::pin(async move { Ok(lookup_host((host.as_str(), port)).await?.collect()) })
    })
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
        Self::asking(system(), target, dial, limits)
    }

    fn asking(lookup: Lookup, target: Target, dial: Dial, limits: PoolLimits) -> Self {
        let endpoints = Self {
            target,
            dial,
            limits,
            list: ArcSwap::default(),
            next: AtomicUsize::new(0),
            resolver: Mutex::default(),
            lookup,
            lookups_failed: AtomicU64::new(0),
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
                // A resolver may take its time, and is asked again without anybody who waits. Boxed:
                // the future of every request has room for it else.
                let asked =
                    Box::pin(timeout(self.limits.connect, self.resolve(RESOLVE_AGAIN))).await;
                let resolved = asked.unwrap_or_else(|late| Err(late.into()));
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
        let mut found = (self.lookup)(host.clone(), *port).await;
        let mut addresses = found.as_mut().map(std::mem::take).unwrap_or_default();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(INSTANCES_MAX);
        if !addresses.is_empty() {
            if resolved.bad.is_some() {
                tracing::info!(host, "onus: the resolver has addresses again");
            }
            *resolved = Resolved { good: Some(Instant::now()), bad: None };
            self.take_over(&addresses);
            return Ok(());
        }
        let error = found.err().unwrap_or_else(nothing_found);
        if resolved.bad.replace(Instant::now()).is_none() {
            tracing::warn!(host, %error, "onus: the resolver has no address");
        }
        self.lookups_failed.fetch_add(1, Ordering::Relaxed);
        if resolved.good.is_none_or(|good| good.elapsed() > STALE_MAX) {
            self.take_over(&[]);
        }
        Err(error)
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
        let lookups_failed = self.lookups_failed.load(Ordering::Relaxed);
        let mut view = PoolView { lookups_failed, ..PoolView::default() };
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Shared;

    use tokio::time::{advance, sleep};

    use super::*;

    /// What the resolver says: instances, or nothing.
    type Says = Arc<Shared<Vec<u8>>>;

    fn endpoints(says: &Says) -> Endpoints<()> {
        let says = says.clone();
        let lookup: Lookup = Box::new(move |_, port| {
            let said = says.lock().unwrap().clone();
            let addresses = said.iter().map(|&n| SocketAddr::from(([10, 0, 0, n], port)));
            let addresses: Vec<_> = addresses.collect();
            Box::pin(async move {
                match addresses.is_empty() {
                    true => Err(io::Error::other("no such name")),
                    false => Ok(addresses),
                }
            })
        });
        let limits = PoolLimits {
            connections: 1,
            http2_connections: 1,
            streams: 1,
            header_bytes: 1,
            pending: 1,
            connect: Duration::from_secs(1),
            idle: Duration::from_secs(1),
        };
        let dial = Dial { timeout: limits.connect, tls: None, own: [].into() };
        let target = Target::Name { host: "pay".to_owned(), port: 80 };
        Endpoints::asking(lookup, target, dial, limits)
    }

    fn known(endpoints: &Endpoints<()>) -> Vec<u8> {
        let last = |address: SocketAddr| match address.ip() {
            std::net::IpAddr::V4(ip) => ip.octets()[3],
            std::net::IpAddr::V6(_) => 0,
        };
        endpoints.list.load().iter().map(|endpoint| last(endpoint.address)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn instances_follow_the_name_and_outlast_a_resolver_that_fails() {
        // S96
        let says = Says::default();
        let endpoints = endpoints(&says);
        assert!(endpoints.pick(None).await.is_err(), "nobody knows where it is");
        *says.lock().unwrap() = vec![1, 2];
        sleep(RESOLVE_AGAIN).await;
        endpoints.pick(None).await.unwrap();
        assert_eq!(known(&endpoints), [1, 2]);
        let kept = endpoints.list.load()[1].clone();

        *says.lock().unwrap() = vec![2, 3, 2];
        endpoints.resolve(RESOLVE_AGAIN).await.unwrap();
        assert_eq!(known(&endpoints), [1, 2], "it was asked a moment ago");
        advance(RESOLVE_AGAIN).await;
        endpoints.resolve(RESOLVE_AGAIN).await.unwrap();
        assert_eq!(known(&endpoints), [2, 3]);
        assert!(Arc::ptr_eq(&kept, &endpoints.list.load()[0]), "who stays keeps its connections");

        says.lock().unwrap().clear();
        let failed = endpoints.view().lookups_failed;
        let since = Instant::now();
        while since.elapsed() + RESOLVE_AGAIN < STALE_MAX {
            advance(RESOLVE_AGAIN).await;
            assert!(endpoints.resolve(RESOLVE_AGAIN).await.is_err());
            assert_eq!(known(&endpoints), [2, 3], "after {:?}", since.elapsed());
            assert!(endpoints.pick(None).await.is_ok());
        }
        assert!(endpoints.view().lookups_failed > failed + 100);
        advance(RESOLVE_AGAIN * 2).await;
        assert!(endpoints.resolve(RESOLVE_AGAIN).await.is_err());
        assert!(known(&endpoints).is_empty(), "addresses of long ago may be somebody else's");
        assert!(endpoints.pick(None).await.is_err());
        *says.lock().unwrap() = vec![4];
        advance(RESOLVE_AGAIN).await;
        assert_eq!(
            endpoints.pick(None).await.unwrap().address,
            SocketAddr::from(([10, 0, 0, 4], 80))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_for_a_resolver_than_for_a_connection() {
        let silent: Lookup = Box::new(|_, _| Box::pin(std::future::pending()));
        let endpoints = Endpoints { lookup: silent, ..endpoints(&Says::default()) };
        let since = Instant::now();
        let errors = [endpoints.pick(None).await.err(), endpoints.pick(None).await.err()];
        assert_eq!(since.elapsed(), Duration::from_secs(2), "a second each");
        for error in errors {
            let Some(PoolError::Resolve { source, .. }) = error else { panic!("{error:?}") };
            assert_eq!(source.kind(), io::ErrorKind::TimedOut);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_goes_to_an_instance_that_the_call_has_not_tried() {
        // S96
        let says = Says::new(Shared::new(vec![1, 2, 3]));
        let endpoints = endpoints(&says);
        let trail = Trail::default();
        let mut tried = Vec::new();
        for _ in 0..3 {
            tried.push(endpoints.pick(Some(&trail)).await.unwrap().address);
        }
        tried.sort_unstable();
        tried.dedup();
        assert_eq!(tried.len(), 3, "each attempt has another");
        // An instance that has come meanwhile is preferred to all that were tried.
        *says.lock().unwrap() = vec![1, 2, 3, 9];
        advance(RESOLVE_AGAIN).await;
        endpoints.resolve(RESOLVE_AGAIN).await.unwrap();
        let next = endpoints.pick(Some(&trail)).await.unwrap().address;
        assert_eq!(next, SocketAddr::from(([10, 0, 0, 9], 80)));
    }
}
