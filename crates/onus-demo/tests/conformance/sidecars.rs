//! Sidecars in the process of the test.

use std::io;
use std::time::Duration;

use onus::{Source, Switches};
use onus_demo::{Beside, Sidecar, Sidecars};
use onus_proxy::{ConfigFile, Proxy, ProxyConfig};

/// The sidecars that were started.
#[derive(Default)]
pub(super) struct Proxies(Vec<Proxy>);

impl Sidecars for Proxies {
    async fn start(&mut self, beside: Beside<'_>) -> io::Result<Sidecar> {
        let file = ConfigFile::parse(&beside.configuration(0, 0)).map_err(io::Error::other)?;
        let config = ProxyConfig::new(file).map_err(io::Error::other)?;
        let proxy = Proxy::start(&config).await.map_err(io::Error::other)?;
        if beside.service.shield {
            let shield = Some(Duration::from_secs(60));
            proxy.onus().switch(Source::Admin, &Switches { shield, ..Switches::default() });
        }
        let sidecar = Sidecar { inbound: proxy.inbound(), outbound: proxy.outbound() };
        self.0.push(proxy);
        Ok(sidecar)
    }
}
