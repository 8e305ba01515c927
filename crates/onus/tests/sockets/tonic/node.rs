//! A service on tonic's server, whose one handler answers calls of all four kinds.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::Request;
use onus::Onus;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::{Response, Status, Streaming};
use tower::{Service, service_fn};

use super::wire::{TALK, Text, UNARY, UPLOAD, WATCH};

/// A service on loopback. It ends when it is dropped.
pub(super) struct Node {
    pub(super) address: SocketAddr,
    calls: Arc<AtomicUsize>,
    serving: AbortHandle,
}

/// The messages of one direction.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<String, Status>> + Send>>;

type Answer = Result<Messages, Status>;
type Handler = Arc<dyn Fn(Messages) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

impl Node {
    /// Serves with the inbound layer around everything, as an author would.
    pub(super) async fn start<H, F>(onus: &Onus, handler: H) -> Self
    where
        H: Fn(Messages) -> F + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let handler: Handler = Arc::new(move |messages| {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(handler(messages))
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("bound");
        let incoming = TcpListenerStream::new(listener).map(|stream| {
            // As real servers do; the last small packet would otherwise wait for an ack.
            stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream))
        });
        let mut server = Server::builder().layer(onus.inbound());
        let serving = server.add_service(Talk { handler }).serve_with_incoming(incoming);
        let serving = tokio::spawn(serving).abort_handle();
        Self { address, calls, serving }
    }

    /// Calls that have come in.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// These messages, and then the end or a status.
pub(super) fn says(messages: &[&str], end: Result<(), Status>) -> Messages {
    let messages: Vec<_> = messages.iter().map(|&text| Ok(text.to_owned())).collect();
    Box::pin(tokio_stream::iter(messages).chain(tokio_stream::iter(end.err().map(Err))))
}

/// What tonic generates for a service.
#[derive(Clone)]
struct Talk {
    handler: Handler,
}

impl NamedService for Talk {
    const NAME: &'static str = "talk.Talk";
}

impl Service<Request<Body>> for Talk {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let handler = self.handler.clone();
        let method = request.uri().path().to_owned();
        Box::pin(async move {
            let mut grpc = Grpc::new(Text);
            let said = |request: tonic::Request<String>| says(&[&request.into_inner()], Ok(()));
            let heard = |request: tonic::Request<Streaming<String>>| -> Messages {
                Box::pin(request.into_inner())
            };
            Ok(match &*method {
                UNARY => {
                    let one = service_fn(move |request| first(handler(said(request))));
                    grpc.unary(one, request).await
                }
                UPLOAD => {
                    let one = service_fn(move |request| first(handler(heard(request))));
                    grpc.client_streaming(one, request).await
                }
                WATCH => {
                    let many = service_fn(move |request| stream(handler(said(request))));
                    grpc.server_streaming(many, request).await
                }
                TALK => {
                    let many = service_fn(move |request| stream(handler(heard(request))));
                    grpc.streaming(many, request).await
                }
                other => panic!("{other} is no method"),
            })
        })
    }
}

/// The one message of an answer that is no stream, or its status.
async fn first(answer: impl Future<Output = Answer>) -> Result<Response<String>, Status> {
    let message = answer.await?.next().await;
    message.unwrap_or_else(|| Err(Status::internal("no message"))).map(Response::new)
}

async fn stream(answer: impl Future<Output = Answer>) -> Result<Response<Messages>, Status> {
    answer.await.map(Response::new)
}
