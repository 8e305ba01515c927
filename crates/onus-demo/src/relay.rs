//! What may be between two sidecars: a retry layer as in another proxy, a client that does not wait
//! for long, a network that loses answers.

use std::net::SocketAddr;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use onus::replay::{Attempt, ReplayBody};
use tower::ServiceExt;

use crate::client::Client;
use crate::service::{LOST, NoAnswer};

/// Passes requests on to an address.
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    client: Client,
    to: SocketAddr,
}

impl Relay {
    pub(crate) fn new(client: Client, to: SocketAddr) -> Self {
        Self { client, to }
    }

    /// Passes a request on, and its answer back unless that is to be lost.
    pub(crate) async fn pass(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Incoming>, NoAnswer> {
        let (mut head, body) = request.into_parts();
        let body: Bytes = body.collect().await.map_err(|_| NoAnswer)?.to_bytes();
        let mut uri = head.uri.into_parts();
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = Authority::try_from(self.to.to_string()).ok();
        head.uri = Uri::from_parts(uri).map_err(|_| NoAnswer)?;
        head.headers.remove(http::header::HOST);
        let body = ReplayBody::once(Full::new(body), Attempt::FIRST, None);
        let answer = self.client.oneshot(Request::from_parts(head, body)).await;
        answer.ok().filter(|answer| !answer.headers().contains_key(LOST)).ok_or(NoAnswer)
    }
}
