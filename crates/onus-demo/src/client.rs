//! An HTTP client as applications have it: a pool of connections, and a timeout of its own that
//! nobody above or below knows of.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::TokioExecutor;
use onus::CallError;
use onus::replay::ReplayBody;
use tower::Service;

/// The body of every request here.
type Body = ReplayBody<Empty<Bytes>>;

/// An HTTP client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pool: Pool<HttpConnector, Body>,
    timeout: Option<Duration>,
}

impl Client {
    pub(crate) fn new(timeout: Option<Duration>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self { pool: Pool::builder(TokioExecutor::new()).build(connector), timeout }
    }
}

impl Service<Request<Body>> for Client {
    type Response = Response<Incoming>;
    type Error = NoReply;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, NoReply>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoReply>> {
        self.pool.poll_ready(cx).map_err(NoReply::Broken)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reply = self.pool.request(request);
        let timeout = self.timeout;
        Box::pin(async move {
            let reply = match timeout {
                Some(timeout) => {
                    tokio::time::timeout(timeout, reply).await.map_err(|_| NoReply::Late)?
                }
                None => reply.await,
            };
            reply.map_err(NoReply::Broken)
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
}

impl NoReply {
    /// What kind of failure it is to the layer above.
    pub(crate) fn kind(&self) -> CallError {
        match self {
            Self::Late => CallError::Timeout,
            Self::Broken(error) if error.is_connect() => CallError::Connect,
            Self::Broken(_) => CallError::Reset,
        }
    }
}
