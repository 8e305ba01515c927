//! What stands before a service whose answers get lost: the service does its work, and its caller's
//! Envoy sees the connection close.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use onus_conformance::TreeVector;
use onus_conformance::tree::What;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// A way to a service on which answers get lost.
pub(super) struct Cutter {
    /// The service's listener.
    to: PathBuf,
    tree: TreeVector,
    name: String,
    requests: AtomicU64,
}

/// Whether answers of this service get lost.
pub(super) fn cuts(tree: &TreeVector, name: &str) -> bool {
    tree.faults.iter().any(|fault| fault.what == What::NeverAnswers && fault.node == name)
}

impl Cutter {
    /// Serves as long as the runtime lives.
    pub(super) fn start(at: PathBuf, to: PathBuf, tree: &TreeVector, name: &str) {
        let listener = UnixListener::bind(at).unwrap();
        let (tree, name, requests) = (tree.clone(), name.to_owned(), AtomicU64::new(0));
        tokio::spawn(Arc::new(Self { to, tree, name, requests }).serve(listener));
    }

    async fn serve(self: Arc<Self>, listener: UnixListener) {
        let mut connections = JoinSet::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else { return };
            let this = self.clone();
            let front = service_fn(move |request| {
                let this = this.clone();
                async move { this.pass(request).await }
            });
            connections.spawn(async move {
                // A lost answer ends the connection.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), front).await;
            });
        }
    }

    /// The answer, or an error where it is to be lost.
    async fn pass(&self, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let stream = TokioIo::new(UnixStream::connect(&self.to).await?);
        let (mut sender, connection) =
            client::conn::http1::handshake(stream).await.map_err(io::Error::other)?;
        let connection = tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(io::Error::other)?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        connection.abort();
        if self.tree.happens(What::NeverAnswers, &self.name, number) {
            return Err(io::Error::other("the answer is lost"));
        }
        Ok(Response::from_parts(head, Full::new(body)))
    }
}
