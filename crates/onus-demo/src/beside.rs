//! A topology whose services have no layers, each with a sidecar beside it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tower::service_fn;

use crate::callee::Callee;
use crate::client::Client;
use crate::cluster::{Cluster, handler, listen};
use crate::error::DemoError;
use crate::fault::What;
use crate::protocol::Protocol;
use crate::relay::Relay;
use crate::server;
use crate::service::Service;
use crate::sidecars::{Beside, Sidecars};
use crate::topology::{CalleeConfig, ServiceConfig, Topology};

impl Cluster {
    /// Starts the services without layers, with a sidecar beside each.
    ///
    /// # Errors
    ///
    /// A name that leads nowhere, services that call each other in a circle, a sidecar that does not
    /// start, a socket that cannot be had.
    pub async fn start_beside(
        topology: &Topology,
        sidecars: &mut impl Sidecars,
    ) -> Result<Self, DemoError> {
        let (mut cluster, listeners) = Self::bind(topology)?;
        let mut left: Vec<_> =
            topology.services.iter().zip((topology.seed..).zip(listeners)).collect();
        // A sidecar has to know where those are that its service calls, so these come first.
        let mut public: Vec<(String, SocketAddr)> = Vec::new();
        while !left.is_empty() {
            let is_next = |service: &ServiceConfig| {
                let mut callees = service.callees.iter();
                callees.all(|callee| public.iter().any(|(name, _)| *name == callee.name))
            };
            let Some(next) = left.iter().position(|(service, _)| is_next(service)) else {
                return Err(DemoError::Circle { service: left[0].0.name.clone() });
            };
            let (service, (seed, listener)) = left.swap_remove(next);
            let address = cluster.serve_beside(service, listener, seed, &public, sidecars).await?;
            public.push((service.name.clone(), address));
        }
        let entry = &topology.services[0].name;
        let entry = public.iter().find(|(name, _)| name == entry);
        cluster.entry = entry.map_or(cluster.entry, |(_, address)| *address);
        Ok(cluster)
    }

    /// Starts a service with its sidecar; where others find it.
    async fn serve_beside(
        &mut self,
        config: &ServiceConfig,
        listener: TcpListener,
        seed: u64,
        public: &[(String, SocketAddr)],
        sidecars: &mut impl Sidecars,
    ) -> Result<SocketAddr, DemoError> {
        let protocol = self.protocol();
        let mut callees = Vec::new();
        for callee in &config.callees {
            if let Some((_, address)) = public.iter().find(|(name, _)| *name == callee.name) {
                callees.push((callee, self.way_to(callee, protocol, *address)?));
            }
        }
        let app = listener.local_addr().map_err(DemoError::Listen)?;
        let beside = Beside { service: config, protocol, app, callees };
        let failed = |source| DemoError::Sidecar { service: config.name.clone(), source };
        let sidecar = sidecars.start(beside).await.map_err(failed)?;
        let callee = |callee| Callee::behind(callee, protocol, sidecar.outbound);
        let callees = config.callees.iter().map(callee).collect();
        let at_work = self.at_work.clone();
        let service = Service::new(config.clone(), protocol, callees, seed, at_work, true);
        let service = Arc::new(service);
        let handler = service_fn(handler(service.clone()));
        self.servers.spawn(server::serve(listener, Some(service), handler));
        if config.faults.iter().any(|fault| fault.what == What::Closes) {
            return self.relay(Client::new(protocol, None, None), sidecar.inbound);
        }
        Ok(sidecar.inbound)
    }

    /// Where a sidecar finds a callee: at its own sidecar, or behind what is between the two.
    fn way_to(
        &mut self,
        callee: &CalleeConfig,
        protocol: Protocol,
        address: SocketAddr,
    ) -> Result<SocketAddr, DemoError> {
        if callee.retry_layer.is_none() && callee.client_timeout.is_none() {
            return Ok(address);
        }
        self.relay(Client::new(protocol, callee.client_timeout, callee.retry_layer), address)
    }

    fn relay(&mut self, client: Client, to: SocketAddr) -> Result<SocketAddr, DemoError> {
        let (listener, address) = listen().map_err(DemoError::Listen)?;
        let relay = Relay::new(client, to);
        let pass = service_fn(move |request| relay.clone().pass(request));
        self.servers.spawn(server::serve(listener, None, pass));
        Ok(address)
    }
}
