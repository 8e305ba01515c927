//! A callee as its caller holds it: an HTTP client with the outbound layer around it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use onus::outbound::OutboundBody;
use onus::{AttemptError, Onus, OutboundService};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

use crate::client::{Client, NoReply};
use crate::key::Key;
use crate::topology::CalleeConfig;

type ClassifyFn = fn(&NoReply) -> AttemptError;

/// A callee.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    client: OutboundService<Client, ClassifyFn>,
    uri: Uri,
    body: Bytes,
    tries: u32,
    patience: Option<Duration>,
    tolerated: bool,
}

impl Callee {
    /// The callee of this configuration, at this address.
    pub(crate) fn new(onus: &Onus, config: &CalleeConfig, address: SocketAddr) -> Self {
        let layer = onus.outbound(&config.name).classify_errors(NoReply::kind as ClassifyFn);
        Self {
            client: layer.layer(Client::new(config.client_timeout, config.retry_layer)),
            uri: uri(address),
            body: if config.replayable { Bytes::new() } else { Bytes::from_static(b"once") },
            tries: config.tries,
            patience: config.patience,
            tolerated: config.tolerated,
        }
    }

    /// Calls, as often as the handler's own loop says, for a request with this key; whether the
    /// handler can go on.
    pub(crate) async fn call(&self, key: Option<Key>) -> bool {
        for _ in 0..self.tries {
            let answered = match self.patience {
                Some(patience) => timeout(patience, self.answers(key)).await.unwrap_or(false),
                None => self.answers(key).await,
            };
            if answered {
                return true;
            }
        }
        self.tolerated
    }

    /// Whether a call is answered without an error, to the end.
    async fn answers(&self, key: Option<Key>) -> bool {
        match self.send(key).await {
            Ok(response) if response.status().is_success() => {
                response.into_body().collect().await.is_ok()
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// One logical call, with the retries of the outbound layer.
    pub(crate) async fn send(
        &self,
        key: Option<Key>,
    ) -> Result<Response<OutboundBody<Incoming>>, NoReply> {
        let mut request = Request::new(Full::new(self.body.clone()));
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
