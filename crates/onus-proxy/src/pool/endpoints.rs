//! The instances of a callee: where they are, and which one an attempt goes to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use onus::replay::Trail;

use super::PoolLimits;
use super::dial::Dial;
use super::endpoint::Endpoint;
use super::error::PoolError;
use super::resolver::{self, Lookup, Resolver, nothing_found};
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
    dial: Dial,
    limits: PoolLimits,
    list: ArcSwap<Vec<Arc<Endpoint<B>>>>,
    /// Where the next attempt begins to look: everybody's turn comes.
    next: AtomicUsize,
    /// Who knows where they are, if that is a name.
    resolver: Option<Resolver>,
}

impl<B> Endpoints<B> {
    pub(super) fn new(target: Target, dial: Dial, limits: PoolLimits) -> Self {
        Self::asking(resolver::system(), target, dial, limits)
    }

    fn asking(lookup: Lookup, target: Target, dial: Dial, limits: PoolLimits) -> Self {
        let (addresses, resolver) = match target {
            Target::Addresses(addresses) => (addresses, None),
            Target::Name { host, port } => {
                (Vec::new(), Some(Resolver::new(lookup, host, port, limits.connect)))
            }
        };
        let (list, next) = (ArcSwap::default(), AtomicUsize::new(0));
        let endpoints = Self { dial, limits, list, next, resolver };
        endpoints.take_over(&addresses);
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
        let host = self.resolver.as_ref().map_or("", Resolver::host).to_owned();
        PoolError::Resolve { host, source }
    }

    /// Whether the instances are where a name leads.
    pub(super) fn have_name(&self) -> bool {
        self.resolver.is_some()
    }

    /// Asks the resolver, but not within `again` of the last time.
    pub(super) async fn resolve(&self, again: Duration) -> io::Result<()> {
        match &self.resolver {
            Some(resolver) => resolver.ask(again, |addresses| self.take_over(addresses)).await,
            None => Ok(()),
        }
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
        if let Some(resolver) = &self.resolver {
            (view.lookups_failed, view.left_out) = (resolver.failed(), resolver.left_out());
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex as Shared;

    use bytes::Bytes;
    use http_body_util::Empty;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;
    use tokio::time::{Instant, advance, sleep, timeout};

    use super::resolver::{INSTANCES_MAX, STALE_MAX};
    use super::*;

    /// What the resolver says: instances, or nothing.
    type Says = Arc<Shared<Vec<u8>>>;

    fn endpoints(says: &Says) -> Endpoints<()> {
        let says = says.clone();
        asking(Box::new(move |_, port| {
            let said = says.lock().unwrap().clone();
            let addresses = said.iter().map(|&n| SocketAddr::from(([10, 0, 0, n], port)));
            let addresses: Vec<_> = addresses.collect();
            Box::pin(async move {
                match addresses.is_empty() {
                    true => Err(io::Error::other("no such name")),
                    false => Ok(addresses),
                }
            })
        }))
    }

    fn asking<B>(lookup: Lookup) -> Endpoints<B> {
        let limits = PoolLimits {
            connections: 2,
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

    #[tokio::test]
    async fn connections_to_an_instance_that_has_left_are_closed_when_their_requests_have_ended() {
        // S96
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let says = Arc::new(Shared::new(vec![address]));
        let said = says.clone();
        let endpoints: Endpoints<Empty<Bytes>> = asking(Box::new(move |_, _| {
            let addresses = said.lock().unwrap().clone();
            Box::pin(std::future::ready(Ok(addresses)))
        }));
        let endpoint = endpoints.pick(None).await.unwrap();
        let (mut idle, mut used) =
            (endpoint.http1().await.unwrap(), endpoint.http1().await.unwrap());
        idle.sender.ready().await.unwrap();
        idle.give_back();
        *says.lock().unwrap() = vec![SocketAddr::from(([127, 0, 0, 1], 1))];
        endpoints.resolve(Duration::ZERO).await.unwrap();
        used.sender.ready().await.expect("its request is under way");
        used.give_back();
        drop(endpoint);
        for _ in 0..2 {
            let (mut peer, _) = listener.accept().await.unwrap();
            let closed = timeout(Duration::from_secs(10), peer.read(&mut [0; 64])).await;
            assert_eq!(closed.expect("it is closed").unwrap(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_that_is_silent_is_asked_once_and_holds_nobody_up() {
        // S96
        let (asked, slow) = (Arc::new(Shared::new(0)), Duration::from_secs(20));
        let asks = asked.clone();
        let endpoints = asking(Box::new(move |_, port| {
            *asks.lock().unwrap() += 1;
            Box::pin(async move {
                sleep(slow).await;
                Ok(vec![SocketAddr::from(([10, 0, 0, 7], port))])
            })
        }));
        let patience = Duration::from_secs(1);
        let since = Instant::now();
        // Whoever goes away leaves the question as it is.
        for _ in 0..5 {
            let gone = timeout(patience / 10, endpoints.pick(None)).await;
            assert!(gone.is_err());
        }
        let error = endpoints.pick(None).await.err().expect("nobody knows where it is");
        assert_eq!(since.elapsed().as_millis(), patience.as_millis());
        let silent = |error| {
            let PoolError::Resolve { source, .. } = error else { panic!("{error}") };
            (source.kind(), source.to_string())
        };
        let says = (io::ErrorKind::TimedOut, "the resolver does not answer".to_owned());
        assert_eq!(silent(error), says);
        // Later ones do not wait at all, and hear the same.
        for _ in 0..3 {
            let since = Instant::now();
            let error = endpoints.pick(None).await.err().expect("nobody knows where it is");
            assert_eq!((silent(error), since.elapsed()), (says.clone(), Duration::ZERO));
            sleep(RESOLVE_AGAIN).await;
        }
        assert_eq!(endpoints.view().lookups_failed, 3, "once a second");
        // The answer counts when it is there at last.
        sleep(slow).await;
        assert_eq!(*asked.lock().unwrap(), 1);
        endpoints.pick(None).await.expect("it has answered");
        assert_eq!((known(&endpoints), *asked.lock().unwrap()), (vec![7], 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_with_more_instances_than_are_kept_is_served_by_its_first_ones() {
        let endpoints: Endpoints<()> = asking(Box::new(|_, port| {
            let many = (0..300_u16).rev().map(move |n| {
                let [high, low] = n.to_be_bytes();
                SocketAddr::from(([10, 0, high, low], port))
            });
            Box::pin(std::future::ready(Ok(many.collect())))
        }));
        endpoints.pick(None).await.expect("it is known");
        let view = endpoints.view();
        assert_eq!((view.instances, view.left_out), (INSTANCES_MAX, 300 - INSTANCES_MAX));
        let last = endpoints.list.load()[INSTANCES_MAX - 1].address;
        assert_eq!(last, SocketAddr::from(([10, 0, 0, 255], 80)));
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
