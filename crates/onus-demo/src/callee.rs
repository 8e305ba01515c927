//! A callee as its caller holds it: an HTTP client with the outbound layer around it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use onus::outbound::OutboundBody;
use onus::replay::{Attempt, ReplayBody};
use onus::{AttemptError, Onus, OutboundService};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

use crate::carried::Carried;
use crate::client::{Client, NoReply};
use crate::protocol::{Protocol, Status};
use crate::topology::CalleeConfig;

type ClassifyFn = fn(&NoReply) -> AttemptError;

/// A callee.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    client: Caller,
    protocol: Protocol,
    request: Request<Full<Bytes>>,
    tries: u32,
    patience: Option<Duration>,
    tolerated: bool,
}

/// Who makes the retries.
#[derive(Clone, Debug)]
enum Caller {
    /// The outbound layer around the client.
    Layer(OutboundService<Client, ClassifyFn>),
    /// The sidecar that the client calls.
    Sidecar(Client),
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
        let client = layer.layer(Client::new(protocol, config.client_timeout, config.retry_layer));
        Self::through(Caller::Layer(client), config, protocol, address)
    }

    /// The callee of this configuration, through the sidecar that listens at this address.
    pub(crate) fn behind(config: &CalleeConfig, protocol: Protocol, sidecar: SocketAddr) -> Self {
        let client = Caller::Sidecar(Client::new(protocol, None, None));
        let mut callee = Self::through(client, config, protocol, sidecar);
        if let Ok(name) = HeaderValue::try_from(&config.name) {
            callee.request.headers_mut().insert(ONUS_CALLEE, name);
        }
        callee
    }

    fn through(
        client: Caller,
        config: &CalleeConfig,
        protocol: Protocol,
        address: SocketAddr,
    ) -> Self {
        Self {
            client,
            protocol,
            request: protocol.request(address, if config.replayable { b"" } else { b"once" }),
            tries: config.tries,
            patience: config.patience,
            tolerated: config.tolerated,
        }
    }

    /// Calls, as often as the handler's own loop says; whether the handler can go on.
    pub(crate) async fn call(&self, carried: &Carried) -> bool {
        for _ in 0..self.tries {
            let answered = match self.patience {
                Some(patience) => timeout(patience, self.answers(carried)).await.unwrap_or(false),
                None => self.answers(carried).await,
            };
            if answered {
                return true;
            }
        }
        self.tolerated
    }

    /// Whether a call is answered without an error, to the end.
    async fn answers(&self, carried: &Carried) -> bool {
        let Ok(response) = self.send(carried).await else { return false };
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
        carried: &Carried,
    ) -> Result<Response<Either<OutboundBody<Incoming>, Incoming>>, NoReply> {
        let mut request = self.request.clone();
        carried.write(request.headers_mut());
        match &self.client {
            Caller::Layer(client) => {
                client.clone().oneshot(request).await.map(|answer| answer.map(Either::Left))
            }
            Caller::Sidecar(client) => {
                let once = |body| ReplayBody::once(body, Attempt::FIRST, None);
                let answer = client.clone().oneshot(request.map(once)).await;
                answer.map(|answer| answer.map(Either::Right))
            }
        }
    }
}

/// By which a sidecar knows who is called.
const ONUS_CALLEE: HeaderName = HeaderName::from_static("onus-callee");
