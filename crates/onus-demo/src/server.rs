//! The listening side of a service: HTTP/1.1 and HTTP/2, whatever a client begins with, with the
//! count beside what it serves.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use onus::replay::BoxError;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::Service as TowerService;

use crate::service::{NoAnswer, Service};

/// The path under which a service tells how many requests it has handled; asking is not counted.
pub(crate) const COUNT: &str = "/count";

/// The path under which it tells the same for each key, in a line.
pub(crate) const COUNT_BY_KEY: &str = "/count/by-key";

/// Serves `stack`, which ends in `service` if there is one, until dropped.
pub(crate) async fn serve<S, B>(listener: TcpListener, service: Option<Arc<Service>>, stack: S)
where
    S: TowerService<Request<Incoming>, Response = Response<B>, Error = NoAnswer>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A connection that broke before it was accepted is its caller's affair.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, service.clone(), stack.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection<S, B>(stream: TcpStream, service: Option<Arc<Service>>, stack: S)
where
    S: TowerService<Request<Incoming>, Response = Response<B>, Error = NoAnswer>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    // Without it a small answer waits for the caller's acknowledgement; it is slower, not wrong.
    let _ = stream.set_nodelay(true);
    let front = service_fn(move |request: Request<Incoming>| {
        let told = service.as_ref().and_then(|service| match request.uri().path() {
            COUNT => Some(service.handled().to_string()),
            COUNT_BY_KEY => Some(service.handled_by_key().map(|count| count.to_string()).join(" ")),
            _ => None,
        });
        let mut stack = stack.clone();
        async move {
            Ok::<_, NoAnswer>(match told {
                Some(told) => Response::new(Either::Left(Full::from(told))),
                None => stack.call(request).await?.map(Either::Right),
            })
        }
    });
    // How a connection ends is seen by its caller.
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http2().max_concurrent_streams(STREAMS_MAX);
    let _ = server.serve_connection(TokioIo::new(stream), front).await;
}

/// Requests that hang are many at a time, and all of a caller's may share a connection.
const STREAMS_MAX: u32 = 4096;
