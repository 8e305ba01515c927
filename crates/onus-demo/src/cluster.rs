//! A topology that runs on loopback.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use onus::{Annotation, ErrorSet, Onus, Source, Switches};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tower::{Layer, service_fn};

use crate::callee::Callee;
use crate::carried::Carried;
use crate::error::DemoError;
use crate::load::{self, Load, Report};
use crate::protocol::{AnswerBody, Protocol};
use crate::server::{self, COUNT, COUNT_BY_KEY};
use crate::service::{NoAnswer, Service};
use crate::settled::AtWork;
use crate::topology::{Coverage, ServiceConfig, Topology};

/// Services of a topology, each listening on its own port of loopback until dropped.
#[derive(Debug)]
pub struct Cluster {
    addresses: Vec<(String, SocketAddr)>,
    handles: Vec<Onus>,
    /// Where clients find the first service.
    pub(crate) entry: SocketAddr,
    protocol: Protocol,
    pub(crate) at_work: AtWork,
    pub(crate) servers: JoinSet<()>,
}

impl Cluster {
    /// Starts the services.
    ///
    /// # Errors
    ///
    /// A name that leads nowhere, a configuration that Onus refuses, a socket that cannot be had.
    pub async fn start(topology: &Topology) -> Result<Self, DemoError> {
        let (mut cluster, listeners) = Self::bind(topology)?;
        for (seed, (service, listener)) in
            (topology.seed..).zip(topology.services.iter().zip(listeners))
        {
            cluster.serve(service, listener, seed)?;
        }
        Ok(cluster)
    }

    /// Takes a socket for each service.
    pub(crate) fn bind(topology: &Topology) -> Result<(Self, Vec<TcpListener>), DemoError> {
        topology.check()?;
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for service in &topology.services {
            let (listener, address) = listen().map_err(DemoError::Listen)?;
            addresses.push((service.name.clone(), address));
            listeners.push(listener);
        }
        let cluster = Self {
            entry: addresses[0].1,
            addresses,
            handles: Vec::new(),
            protocol: topology.protocol,
            at_work: AtWork::nobody(),
            servers: JoinSet::new(),
        };
        Ok((cluster, listeners))
    }

    /// Sends requests to the first service, and waits until nobody is at work any more.
    ///
    /// # Errors
    ///
    /// Onus refuses to be the client.
    pub async fn send(&self, load: Load) -> Result<Report, DemoError> {
        let (entry, _) = &self.addresses[0];
        let report = load::send(entry, self.protocol, self.entry, load).await?;
        self.settled().await;
        Ok(report)
    }

    /// Waits until nobody is at work any more. Handlers may go on when their callers have gone.
    pub async fn settled(&self) {
        self.at_work.settled().await;
    }

    /// How the services talk.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Where each service listens, in the topology's order.
    #[must_use]
    pub fn addresses(&self) -> &[(String, SocketAddr)] {
        &self.addresses
    }

    /// The Onus of each service, in the topology's order: to let them report, for one.
    #[must_use]
    pub fn handles(&self) -> &[Onus] {
        &self.handles
    }

    /// How many requests each service has handled, in the topology's order: what it answers to
    /// `GET /count`.
    ///
    /// # Errors
    ///
    /// A service that gives no number.
    pub async fn counts(&self) -> Result<Vec<u64>, DemoError> {
        let mut counts = Vec::with_capacity(self.addresses.len());
        for line in self.told(COUNT).await? {
            counts.extend(line);
        }
        Ok(counts)
    }

    /// How many of them had each key, in the order of keys: what each service answers to
    /// `GET /count/by-key`. The client sends a hundred keys, each as often as any other; a hundred
    /// requests in a row have every key once.
    ///
    /// # Errors
    ///
    /// A service that gives no numbers.
    pub async fn counts_by_key(&self) -> Result<Vec<Vec<u64>>, DemoError> {
        self.told(COUNT_BY_KEY).await
    }

    /// The numbers that each service tells under `path`.
    async fn told(&self, path: &str) -> Result<Vec<Vec<u64>>, DemoError> {
        let mut all = Vec::with_capacity(self.addresses.len());
        for (service, address) in &self.addresses {
            let problem = |problem| DemoError::Count { service: service.clone(), problem };
            all.push(numbers(*address, path).await.map_err(problem)?);
        }
        Ok(all)
    }

    fn serve(
        &mut self,
        config: &ServiceConfig,
        listener: TcpListener,
        seed: u64,
    ) -> Result<(), DemoError> {
        let protocol = self.protocol;
        let onus = onus(config, protocol)?;
        self.handles.push(onus.clone());
        let callees = config.callees.iter().filter_map(|callee| {
            let address = self.addresses.iter().find(|(name, _)| *name == callee.name)?.1;
            Some(Callee::new(&onus, callee, protocol, address))
        });
        let callees = callees.collect();
        let at_work = self.at_work.clone();
        let service = Service::new(config.clone(), protocol, callees, seed, at_work, false);
        let service = Arc::new(service);
        let handler = service_fn(handler(service.clone()));
        match config.coverage {
            Coverage::Correlated | Coverage::ContextLost => {
                let stack = onus.inbound().layer(handler);
                self.servers.spawn(server::serve(listener, Some(service), stack));
            }
            Coverage::NonCooperative => {
                self.servers.spawn(server::serve(listener, Some(service), handler));
            }
        }
        Ok(())
    }
}

/// What a service does with a request from a socket.
pub(crate) fn handler(
    service: Arc<Service>,
) -> impl Fn(Request<Incoming>) -> Handled + Clone + Send + 'static {
    move |request| {
        let service = service.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            // A request that is not all there is its caller's affair.
            let _ = body.collect().await;
            service.handle(Carried::read(&head.headers)).await
        })
    }
}

type Handled = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, NoAnswer>> + Send>>;

/// Listens on a free port.
pub(crate) fn listen() -> io::Result<(TcpListener, SocketAddr)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Where requests hang, each needs a connection of its own, and a storm brings many at a time. One
/// that finds no room would be tried again after a second: when nobody waits for it any more.
const BACKLOG: u32 = 4096;

fn onus(config: &ServiceConfig, protocol: Protocol) -> Result<Onus, DemoError> {
    let mut builder = Onus::builder(&config.name).mode(config.mode_outbound());
    if config.silent_claims {
        builder = builder.silent_claims();
    }
    if config.callees.iter().any(|callee| !callee.replayable) {
        // No byte of content is kept: requests with some cannot be sent again.
        builder = builder.replay_limits(protocol.body(&[]).len(), REPLAY_MAX);
    }
    for callee in &config.callees {
        builder = builder.retry(&callee.name, callee.policy());
        builder = match callee.annotation {
            None => builder,
            Some(Annotation::Required) => builder.required(&callee.name),
            Some(Annotation::Optional) => builder.optional(&callee.name),
        };
        if let Some(layer) = callee.retry_layer {
            builder = builder.declared_retries(&callee.name, layer.attempts, ErrorSet::FAILURES);
        }
    }
    let refused = |source| DemoError::Config { service: config.name.clone(), source };
    let onus = builder.build().map_err(refused)?;
    if config.shield {
        let switches = Switches {
            shield: Some(SHIELD),
            who: "onus demo".into(),
            why: "to show what a shield does".into(),
            ..Switches::default()
        };
        onus.switch(Source::Admin, &switches);
    }
    Ok(onus)
}

async fn numbers(address: SocketAddr, path: &str) -> Result<Vec<u64>, String> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<bytes::Bytes>>();
    let uri = format!("http://{address}{path}").parse::<http::Uri>().map_err(|e| e.to_string())?;
    let response = client.get(uri).await.map_err(|error| error.to_string())?;
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    let numbers = text.split(' ').map(str::parse).collect::<Result<_, _>>();
    numbers.map_err(|_| format!("{text:?} is no number"))
}

/// As much as a service keeps that does not say.
const REPLAY_MAX: usize = 64 << 20;

/// The default of the protocol, and longer than a demo.
const SHIELD: Duration = Duration::from_secs(15 * 60);
