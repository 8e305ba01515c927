//! An HTTP client as applications have it: a pool of connections, perhaps a retry layer, and a
//! timeout of its own that nobody above or below knows of.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::TokioExecutor;
use onus::replay::{BoxError, ReplayBody};
use onus::{AttemptError, CallError};
use tokio::select;
use tokio::time::sleep;
use tower::retry::Retry;
use tower::{Service, ServiceExt};

use crate::protocol::Protocol;
use crate::retry_layer::{Attempts, RetryLayer};

/// An HTTP client.
#[derive(Clone, Debug)]
pub(crate) struct Client(Retry<Attempts, Transport>);

impl Client {
    pub(crate) fn new(
        protocol: Protocol,
        timeout: Option<Duration>,
        retry_layer: Option<RetryLayer>,
    ) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let mut pool = Pool::builder(TokioExecutor::new());
        let pool = pool.http2_only(protocol.is_http2()).build(connector);
        Self(Retry::new(Attempts::through(retry_layer), Transport { pool, timeout }))
    }
}

impl Service<Request<ReplayBody<Full<Bytes>>>> for Client {
    type Response = Response<Incoming>;
    type Error = NoReply;
    type Future = Reply;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoReply>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Full<Bytes>>>) -> Reply {
        let client = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(NoReply::Body)?.to_bytes();
            client.oneshot(Request::from_parts(head, Full::new(body))).await
        })
    }
}

type Reply = Pin<Box<dyn Future<Output = Result<Response<Incoming>, NoReply>> + Send>>;

/// The pool, and how long a reply may take once there is a connection.
#[derive(Clone, Debug)]
struct Transport {
    pool: Pool<HttpConnector, Full<Bytes>>,
    timeout: Option<Duration>,
}

impl Service<Request<Full<Bytes>>> for Transport {
    type Response = Response<Incoming>;
    type Error = NoReply;
    type Future = Reply;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoReply>> {
        self.pool.poll_ready(cx).map_err(NoReply::Broken)
    }

    fn call(&mut self, mut request: Request<Full<Bytes>>) -> Reply {
        let mut connection = capture_connection(&mut request);
        let reply = self.pool.request(request);
        let timeout = self.timeout;
        Box::pin(async move {
            let too_late = async {
                connection.wait_for_connection_metadata().await;
                match timeout {
                    Some(timeout) => sleep(timeout).await,
                    None => pending().await,
                }
            };
            select! {
                reply = reply => reply.map_err(NoReply::Broken),
                () = too_late => Err(NoReply::Late),
            }
        })
    }
}

/// Why a client has no reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoReply {
    /// The client's timeout has passed.
    #[error("get a reply in time")]
    Late,
    /// There was no connection, or it broke.
    #[error("get a reply over a connection")]
    Broken(#[source] legacy::Error),
    /// There was no request to send.
    #[error("read the body of the request")]
    Body(#[source] BoxError),
}

impl NoReply {
    /// What kind of failure it is to the layer above.
    pub(crate) fn kind(&self) -> AttemptError {
        AttemptError::Failed(match self {
            Self::Late => CallError::Timeout,
            Self::Broken(error) if error.is_connect() => CallError::Connect,
            Self::Broken(_) | Self::Body(_) => CallError::Reset,
        })
    }
}
