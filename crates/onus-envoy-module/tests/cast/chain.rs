//! Services in a row, each with its Envoy.

use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};

use super::app::App;
use super::config::{Filters, Retries, Sidecar};
use super::envoy::Envoy;
use super::http::{Client, Protocol, Seen};

/// A service of a chain before it is started.
pub(crate) struct Setup {
    pub(crate) app: Arc<App>,
    pub(crate) filters: Filters,
    pub(crate) retries: Retries,
}

/// A running chain: `a` calls `b`, and so on; the last calls nobody.
pub(crate) struct Chain {
    protocol: Protocol,
    pub(crate) apps: Vec<Arc<App>>,
    pub(crate) envoys: Vec<Envoy>,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "nobody"];

impl Chain {
    /// Starts the services, the last one first.
    pub(crate) async fn start(binary: &Path, protocol: Protocol, services: Vec<Setup>) -> Self {
        let mut next = "127.0.0.1:9".parse().unwrap();
        let (mut apps, mut envoys) = (Vec::new(), Vec::new());
        for (index, service) in services.into_iter().enumerate().rev() {
            let sidecar = Sidecar {
                service: NAMES[index],
                protocol,
                app: service.app.address,
                callee: (NAMES[index + 1], next),
                retries: service.retries,
                filters: &service.filters,
                old: Envoy::is_old(binary),
            };
            let envoy = Envoy::start(binary, &sidecar.yaml()).await;
            service.app.call_through(envoy.port("outbound"));
            next = envoy.port("inbound");
            apps.insert(0, service.app);
            envoys.insert(0, envoy);
        }
        Self { protocol, apps, envoys }
    }

    /// A chain of so many services, whose last one fails always.
    pub(crate) async fn broken_at_its_end(
        binary: &Path,
        protocol: Protocol,
        filters: &[Filters],
        retries: Retries,
    ) -> Self {
        let (len, mut services) = (filters.len(), Vec::new());
        for (index, filters) in filters.iter().enumerate() {
            let app = if index + 1 == len {
                App::failing(protocol).await
            } else {
                App::passing(protocol).await
            };
            services.push(Setup { app, filters: filters.clone(), retries });
        }
        Self::start(binary, protocol, services).await
    }

    /// Sends so many requests, one after the other; the last answer.
    pub(crate) async fn send(&self, requests: u64, headers: &[(&'static str, &str)]) -> Seen {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        let headers: HeaderMap = headers.iter().map(line).collect();
        let client = Client::new(self.protocol);
        let mut last = None;
        for _ in 0..requests {
            last = Some(client.send(self.envoys[0].port("inbound"), &headers).await.unwrap());
        }
        last.unwrap()
    }

    /// The requests that each application has handled.
    pub(crate) fn handled(&self) -> Vec<u64> {
        self.apps.iter().map(|app| app.handled()).collect()
    }
}
