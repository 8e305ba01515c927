//! A callee as its caller holds it: an HTTP client with the outbound layer around it.

use std::net::SocketAddr;

use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use onus::outbound::OutboundBody;
use onus::{CallError, Onus, OutboundService};
use tower::{Layer, ServiceExt};

use crate::client::{Client, NoReply};
use crate::key::Key;
use crate::topology::CalleeConfig;

type ClassifyFn = fn(&NoReply) -> CallError;

/// A callee.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    client: OutboundService<Client, ClassifyFn>,
    uri: Uri,
    tries: u32,
    tolerated: bool,
}

impl Callee {
    /// The callee of this configuration, at this address.
    pub(crate) fn new(onus: &Onus, config: &CalleeConfig, address: SocketAddr) -> Self {
        let layer = onus.outbound(&config.name).classify_errors(NoReply::kind as ClassifyFn);
        Self {
            client: layer.layer(Client::new(config.client_timeout)),
            uri: uri(address),
            tries: config.tries,
            tolerated: config.tolerated,
        }
    }

    /// Calls, as often as the handler's own loop says, for a request with this key; whether the
    /// handler can go on.
    pub(crate) async fn call(&self, key: Option<Key>) -> bool {
        for _ in 0..self.tries {
            if let Ok(response) = self.send(key).await
                && response.status().is_success()
                && response.into_body().collect().await.is_ok()
            {
                return true;
            }
        }
        self.tolerated
    }

    /// One logical call, with the retries of the outbound layer.
    pub(crate) async fn send(
        &self,
        key: Option<Key>,
    ) -> Result<Response<OutboundBody<Incoming>>, NoReply> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri.clone();
        if let Some(key) = key {
            key.write(request.headers_mut());
        }
        self.client.clone().oneshot(request).await
    }
}

fn uri(address: SocketAddr) -> Uri {
    let parts = Uri::builder().scheme("http").authority(address.to_string()).path_and_query("/");
    parts.build().unwrap_or_default()
}
