//! A listening socket: its connections, in HTTP/1.1 or HTTP/2, whatever a client begins with.

use std::convert::Infallible;
use std::future::Future;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use onus::replay::BoxError;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What answers the requests of a listener.
pub(crate) trait Front: Clone + Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;

    /// Answers a request.
    fn answer(
        self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Serves connections until `drain` says that it is over, and then until they have ended.
pub(crate) async fn serve<F: Front>(
    listener: TcpListener,
    front: F,
    mut drain: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let drained = drain.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, front.clone(), drained.clone()));
                }
                // A connection that broke before it was accepted is its client's affair. Where
                // there is no room for one, others have to end first.
                Err(_) => tokio::task::yield_now().await,
            },
            Some(_) = connections.join_next() => {}
            () = is_over(&mut drain) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connection<F: Front>(stream: TcpStream, front: F, mut drain: watch::Receiver<bool>) {
    // Without it a small answer waits for an acknowledgement; slower, not wrong.
    let _ = stream.set_nodelay(true);
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(None).auto_date_header(false);
    server
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS_MAX)
        .auto_date_header(false);
    let service = service_fn(move |request| {
        let front = front.clone();
        async move { Ok::<_, Infallible>(front.answer(request).await) }
    });
    let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // How a connection ends is seen by its client.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = is_over(&mut drain) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Ready when the proxy drains.
async fn is_over(drain: &mut watch::Receiver<bool>) {
    // A proxy that is gone without a word is over too.
    let _ = drain.wait_for(|&drains| drains).await;
}

/// As much as a stream may have under way; less would slow large bodies down over distance.
const STREAM_WINDOW: u32 = 1 << 20;
/// All streams of a connection together.
const CONNECTION_WINDOW: u32 = 4 << 20;
/// Requests of one connection at a time.
const STREAMS_MAX: u32 = 256;
