//! The client outside, which calls the root and never retries.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as Pool, Error};
use hyper_util::rt::TokioExecutor;
use onus::replay::ReplayBody;
use onus::{AttemptError, CallError, CallOutcome, CalleeClaim, Onus, OutboundService};
use onus_conformance::tree::TreeAnswer;
use tower::{Layer, ServiceExt};

/// An HTTP client that observes.
pub(super) struct Client {
    service: OutboundService<Http, fn(&Error) -> AttemptError>,
    uri: Uri,
}

type Http = Pool<HttpConnector, ReplayBody<Empty<Bytes>>>;

/// A client of the root at this address.
pub(super) fn of(root: SocketAddr) -> Client {
    let pool = Pool::builder(TokioExecutor::new()).build_http();
    let layer = Onus::builder("client").build().unwrap().outbound("root");
    let layer = layer.classify_errors((|_| CallError::Reset.into()) as fn(&Error) -> AttemptError);
    Client { service: layer.layer(pool), uri: format!("http://{root}/").parse().unwrap() }
}

impl Client {
    /// Calls the root once; what is read of its answer.
    pub(super) async fn read(&self) -> TreeAnswer {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri.clone();
        let Ok(response) = self.service.clone().oneshot(request).await else {
            return TreeAnswer::Error(CalleeClaim::Silent);
        };
        let (head, body) = response.into_parts();
        body.collect().await.unwrap();
        match head.status.is_success() {
            true => TreeAnswer::Ok,
            false => TreeAnswer::Error(head.extensions.get::<CallOutcome>().unwrap().read),
        }
    }
}
