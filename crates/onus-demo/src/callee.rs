//! A callee as its caller holds it: an HTTP client with the outbound layer around it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use onus::outbound::OutboundBody;
use onus::{AttemptError, Onus, OutboundService};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

use crate::client::{Client, NoReply};
use crate::key::Key;
use crate::protocol::{Protocol, Status};
use crate::topology::CalleeConfig;

type ClassifyFn = fn(&NoReply) -> AttemptError;

/// A callee.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    client: OutboundService<Client, ClassifyFn>,
    protocol: Protocol,
    request: Request<Full<Bytes>>,
    tries: u32,
    patience: Option<Duration>,
    tolerated: bool,
}

impl Callee {
    /// The callee of this configuration, at this address.
    pub(crate) fn new(
        onus: &Onus,
        config: &CalleeConfig,
        protocol: Protocol,
        address: SocketAddr,
    ) -> Self {
        let layer = onus.outbound(&config.name).classify_errors(NoReply::kind as ClassifyFn);
        Self {
            client: layer.layer(Client::new(protocol, config.client_timeout, config.retry_layer)),
            protocol,
            request: protocol.request(address, if config.replayable { b"" } else { b"once" }),
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
        let Ok(response) = self.send(key).await else { return false };
        let (head, body) = response.into_parts();
        let Ok(body) = body.collect().await else { return false };
        self.status(&head, body.trailers()).is_ok()
    }

    /// What an answer says that has been read to its end.
    pub(crate) fn status(&self, head: &Parts, trailers: Option<&HeaderMap>) -> Status {
        self.protocol.status(head, trailers)
    }

    /// One logical call, with the retries of the outbound layer.
    pub(crate) async fn send(
        &self,
        key: Option<Key>,
    ) -> Result<Response<OutboundBody<Incoming>>, NoReply> {
        let mut request = self.request.clone();
        if let Some(key) = key {
            key.write(request.headers_mut());
        }
        self.client.clone().oneshot(request).await
    }
}
