//! A connection of a client, in HTTP/1.1 or HTTP/2, whatever it begins with.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::activity::{Activity, Counted, Lapse};
use crate::listener::{Front, ListenerCounts, Stage, drains};
use crate::stream::{Watched, begins_with_http2};
use crate::tls::ServerTls;

/// The bounds of a listener and its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerLimits {
    /// Connections at a time.
    pub(crate) connections: usize,
    /// Header fields of a request.
    pub(crate) headers: usize,
    /// Bytes of a request's head.
    pub(crate) header_bytes: usize,
    /// How long a head may take once something of it came.
    pub(crate) header_timeout: Duration,
    /// How long a connection may be without a request.
    pub(crate) idle_timeout: Duration,
    /// Requests of an HTTP/2 connection at a time.
    pub(crate) streams: u32,
    /// Streams of an HTTP/2 connection that were reset before anybody looked at them.
    pub(crate) resets: usize,
}

/// How connections are served.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) limits: ServerLimits,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    tls: Option<Arc<ServerTls>>,
}

impl Server {
    pub(crate) fn new(limits: ServerLimits, tls: Option<Arc<ServerTls>>) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .auto_date_header(false)
            // Time is looked at beside the connection: a timer for each head would cost more.
            .header_read_timeout(None)
            .max_headers(limits.headers)
            .max_header_size(limits.header_bytes);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
            .max_pending_accept_reset_streams(limits.resets)
            .max_local_error_reset_streams(limits.resets);
        Self { limits, http1, http2, tls }
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve<F: Front>(
    stream: TcpStream,
    front: F,
    server: Server,
    counts: Arc<ListenerCounts>,
    stage: watch::Receiver<Stage>,
) {
    // Without it a small answer waits for an acknowledgement; slower, not wrong.
    let _ = stream.set_nodelay(true);
    let wait = server.limits.idle_timeout;
    match &server.tls {
        None => {
            if let Ok(Ok(is_http2)) = timeout(wait, begins_with_http2(&stream)).await {
                serve_over(stream, is_http2, front, server, counts, stage).await;
            }
        }
        Some(tls) => {
            let accept = TlsAcceptor::from(tls.config()).accept(stream);
            match timeout(server.limits.header_timeout, accept).await {
                Ok(Ok(stream)) => {
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve_over(stream, is_http2, front, server, counts, stage).await;
                }
                // Why a handshake failed is told to the client by TLS itself.
                Ok(Err(_)) | Err(_) => {
                    counts.handshakes_failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

async fn serve_over<F: Front, S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    is_http2: bool,
    front: F,
    server: Server,
    counts: Arc<ListenerCounts>,
    stage: watch::Receiver<Stage>,
) {
    let limits = server.limits;
    let activity = Arc::new(Activity::default());
    let io = TokioIo::new(Watched::new(stream, activity.clone()));
    let (serving, counted) = (activity.clone(), counts.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let serving = serving.request(counted.requests.start());
        let front = front.clone();
        async move {
            let answer = front.answer(request).await;
            Ok::<_, Infallible>(answer.map(|body| Counted::new(body, serving)))
        }
    });
    // HTTP/2 has its own bounds for heads that do not end, and pings that are no heads.
    let head = (!is_http2).then_some(limits.header_timeout);
    let every = limits.header_timeout.min(limits.idle_timeout).div_f64(LOOKS);
    let lapses = async {
        let lapse = activity.lapses(head, every, limits.idle_timeout).await;
        if lapse == Lapse::SlowHead {
            counts.slow.fetch_add(1, Ordering::Relaxed);
        }
        lapse
    };
    if is_http2 {
        run(server.http2.serve_connection(io, service), lapses, stage).await;
    } else {
        run(server.http1.serve_connection(io, service).with_upgrades(), lapses, stage).await;
    }
}

/// Runs a connection until it ends, the proxy drains, or it does nothing for too long.
async fn run(
    connection: impl Connection,
    lapses: impl Future<Output = Lapse>,
    mut stage: watch::Receiver<Stage>,
) {
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        // How a connection ends is seen by its client.
        () = connection.as_mut().ended() => return,
        lapse = lapses => if lapse == Lapse::SlowHead { return },
        () = drains(&mut stage) => {}
    }
    connection.as_mut().wind_down();
    connection.ended().await;
}

/// A connection of hyper's, of either version.
trait Connection {
    fn ended(self: Pin<&mut Self>) -> impl Future<Output = ()>;
    /// Answers what is under way and then ends.
    fn wind_down(self: Pin<&mut Self>);
}

impl<I, S, B> Connection for http1::UpgradeableConnection<I, S>
where
    I: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<onus::replay::BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<onus::replay::BoxError>,
{
    async fn ended(self: Pin<&mut Self>) {
        let _ = self.await;
    }

    fn wind_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, B> Connection for http2::Connection<I, S, TokioExecutor>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: hyper::service::HttpService<Incoming, ResBody = B>,
    S::Error: Into<onus::replay::BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<onus::replay::BoxError>,
    TokioExecutor: hyper::rt::bounds::Http2ServerConnExec<S::Future, B>,
{
    async fn ended(self: Pin<&mut Self>) {
        let _ = self.await;
    }

    fn wind_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// How often the time of a connection is looked at before it is over.
const LOOKS: f64 = 2.0;

/// As much as a stream may have under way; less would slow large bodies down over distance.
const STREAM_WINDOW: u32 = 1 << 20;
/// All streams of a connection together.
const CONNECTION_WINDOW: u32 = 4 << 20;
