//! A connection of a client, in HTTP/1.1 or HTTP/2, whatever it begins with.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::activity::{Activity, Counted, Lapse, Serving};
use crate::beside::{self, First};
use crate::client_error::ClientError;
use crate::flood::Frames;
use crate::interim::{Interims, Interjecting};
use crate::listener::{Front, ListenerCounts, Stage, drains};
use crate::stream::{Watched, begins_with_http2, set_up};
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
    /// Frames of an HTTP/2 connection that carry nothing, between two looks at it.
    pub(crate) idle_frames: u32,
}

impl ServerLimits {
    /// Of the admin interface: its documents are made whole for each who asks, and stay until they
    /// are read.
    pub(crate) fn of_admin(self) -> Self {
        Self {
            connections: self.connections.min(ADMIN_CONNECTIONS),
            streams: ADMIN_STREAMS,
            ..self
        }
    }
}

/// How connections are served.
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
            .max_header_size(limits.header_bytes)
            .max_buf_size(http1_buffer(limits.header_bytes));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .auto_date_header(false)
            // WebSocket over HTTP/2 (RFC 8441).
            .enable_connect_protocol()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
            .max_pending_accept_reset_streams(limits.resets)
            .max_local_error_reset_streams(limits.resets);
        Self { limits, http1, http2, tls }
    }

    /// Whether clients connect by TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve<F: Front>(
    stream: TcpStream,
    front: F,
    server: Arc<Server>,
    counts: Arc<ListenerCounts>,
    stage: watch::Receiver<Stage>,
) {
    set_up(&stream);
    let mut client = Client { front, server, counts, stage };
    if !client.speaks(&stream).await {
        return;
    }
    // What waits for its first byte, and HTTP/1.1 without TLS, are many: each of the others has
    // memory of its own, which these do not pay for.
    if let Some(tls) = client.server.tls.clone() {
        Box::pin(client.serve_tls(stream, &tls)).await;
        return;
    }
    match timeout(client.limits().header_timeout, begins_with_http2(&stream)).await {
        Ok(Ok(true)) => Box::pin(client.serve_http2(stream)).await,
        Ok(Ok(false)) => client.serve_http1(stream).await,
        Ok(Err(_)) => {}
        Err(_) => client.is_slow(),
    }
}

/// What a connection is served with.
struct Client<F> {
    front: F,
    server: Arc<Server>,
    counts: Arc<ListenerCounts>,
    stage: watch::Receiver<Stage>,
}

impl<F: Front> Client<F> {
    /// Whether something comes of the client, in time, and while a listener that drains keeps
    /// connections without a request.
    async fn speaks(&mut self, stream: &TcpStream) -> bool {
        let limits = self.limits();
        // A client by TLS speaks first, so its handshake has begun.
        let wait = if self.server.has_tls() { limits.header_timeout } else { limits.idle_timeout };
        let mut first = [0];
        let over = async {
            tokio::select! {
                () = sleep(wait) => {}
                idle = drains(&mut self.stage) => sleep(idle).await,
            }
        };
        tokio::select! {
            biased;
            spoken = stream.peek(&mut first) => matches!(spoken, Ok(1)),
            () = over => false,
        }
    }

    async fn serve_tls(self, stream: TcpStream, tls: &ServerTls) {
        let accept = TlsAcceptor::from(tls.config()).accept(stream);
        match timeout(self.server.limits.header_timeout, accept).await {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                self.serve_http2(stream).await;
            }
            Ok(Ok(stream)) => self.serve_http1(stream).await,
            // Why a handshake failed is told to the client by TLS itself.
            Ok(Err(_)) | Err(_) => {
                self.counts.handshakes_failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    async fn serve_http1<S>(mut self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Arc::new(Activity::default());
        let interims = Interims::new(self.limits().header_bytes, self.counts.interims.clone());
        let stream = Watched::new(stream, activity.clone(), None);
        let io = TokioIo::new(Interjecting::new(stream, interims.clone()));
        let service = service(&self.front, &self.counts, &activity, Some(interims));
        let mut connection = pin!(self.server.http1.serve_connection(io, service).with_upgrades());
        if self.is_over(connection.as_mut(), &activity, Some(self.limits().header_timeout)).await {
            return;
        }
        connection.as_mut().graceful_shutdown();
        self.ends(connection, &activity).await;
    }

    async fn serve_http2<S>(mut self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let activity = Arc::new(Activity::default());
        let frames = Some(Frames::new(self.limits().idle_frames));
        let io = TokioIo::new(Watched::new(stream, activity.clone(), frames));
        let service = service(&self.front, &self.counts, &activity, None);
        let mut connection = pin!(self.server.http2.serve_connection(io, service));
        // It has its own bounds for heads that do not end, and pings that are no heads.
        if self.is_over(connection.as_mut(), &activity, None).await {
            return;
        }
        connection.as_mut().graceful_shutdown();
        self.ends(connection, &activity).await;
    }

    /// Runs a connection until it ends or does nothing for too long, and says whether it is over:
    /// else it is to answer what is under way. A listener that drains has less patience with HTTP/1.1,
    /// where clients can be told only by answers that their connection ends, and none with HTTP/2.
    async fn is_over<C: Future<Output = hyper::Result<()>>>(
        &mut self,
        connection: Pin<&mut C>,
        activity: &Activity,
        head: Option<Duration>,
    ) -> bool {
        let limits = self.limits();
        let stage = &mut self.stage;
        let lapses = |idle: Duration| {
            let every = limits.header_timeout.min(idle).div_f64(LOOKS);
            activity.lapses(head, every, idle)
        };
        let stops = async move {
            let lapse = tokio::select! {
                lapse = lapses(limits.idle_timeout) => lapse,
                idle = drains(stage) => match head {
                    Some(_) => {
                        activity.end();
                        lapses(idle).await
                    }
                    None => return Lapse::Idle,
                },
            };
            // What has arrived by now is noticed, and read before the connection is closed.
            yield_now().await;
            lapse
        };
        match beside::until(connection, stops).await {
            // How a connection ends is seen by its client; what the client did is counted.
            First::Main(ended) => {
                let what = ended.as_ref().err().and_then(ClientError::of);
                what.into_iter().for_each(|error| self.counts.client_errors.count(error));
                true
            }
            First::Aside(Lapse::SlowHead) => {
                self.is_slow();
                true
            }
            First::Aside(Lapse::Idle) => false,
        }
    }

    /// Runs a connection that was told to end until what is under way is answered. Who then does not
    /// let go of it, as a client that is gone without a word, is cut off.
    async fn ends<C: Future<Output = hyper::Result<()>>>(
        &self,
        connection: Pin<&mut C>,
        activity: &Activity,
    ) {
        let limit = self.limits().header_timeout;
        let lapses = activity.lapses(None, limit.div_f64(LOOKS), limit);
        // How it ends is seen by its client.
        let _ = beside::until(connection, lapses).await;
    }

    /// A head did not come in time.
    fn is_slow(&self) {
        self.counts.slow.fetch_add(1, Ordering::Relaxed);
    }

    fn limits(&self) -> ServerLimits {
        self.server.limits
    }
}

/// Answers the requests of a connection, and counts them.
fn service<F: Front>(
    front: &F,
    counts: &Arc<ListenerCounts>,
    activity: &Arc<Activity>,
    interims: Option<Arc<Interims>>,
) -> impl HttpService<Incoming, ResBody = Counted<F::Body>, Error = Infallible, Future: Send + 'static>
+ Send
+ use<F> {
    let (front, counts, activity) = (front.clone(), counts.clone(), activity.clone());
    service_fn(move |mut request: Request<Incoming>| {
        let serving = activity.request(counts.requests.start());
        // HTTP/1.0 has none.
        let interims = match &interims {
            Some(interims) if request.version() == Version::HTTP_11 => {
                Some(interims.open(&mut request))
            }
            Some(_) | None => None,
        };
        Answering { answer: front.clone().answer(request), serving: Some(serving), interims }
    })
}

pin_project! {
    /// The answer to a request that is under way.
    ///
    /// An `async` block would keep the future that it awaits twice, and both are moved for each
    /// request.
    struct Answering<F> {
        #[pin]
        answer: F,
        serving: Option<Serving>,
        interims: Option<Arc<Interims>>,
    }
}

impl<F, B> Future for Answering<F>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
{
    type Output = Result<Response<Counted<B>>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(mut answer) = ready!(this.answer.poll(cx));
        if let Some(interims) = this.interims {
            interims.end();
        }
        // An upgrade says of its connection what it becomes.
        if this.serving.as_ref().is_some_and(Serving::is_last) {
            answer.headers_mut().entry(CONNECTION).or_insert(HeaderValue::from_static("close"));
        }
        // It is polled to its end once, so that there is always something to take.
        let serving = this.serving.take();
        Poll::Ready(Ok(answer.map(|body| Counted::new(body, serving))))
    }
}

/// How much an HTTP/1.1 connection reads ahead, and how much waits to be written: room for a head, and
/// for a body as much as keeps both ends busy. More would be held by each client that does not read.
pub(crate) fn http1_buffer(header_bytes: usize) -> usize {
    const BODY: usize = 128 << 10;
    // A buffer that is full is too small.
    BODY.max(header_bytes + (4 << 10))
}

/// How often the time of a connection is looked at before it is over.
const LOOKS: f64 = 2.0;

/// Connections of the admin interface: people, a scraper or two, and probes.
const ADMIN_CONNECTIONS: usize = 256;
/// Requests of one of them at a time.
const ADMIN_STREAMS: u32 = 8;

/// As much as a stream may have under way; less would slow large bodies down over distance.
const STREAM_WINDOW: u32 = 1 << 20;
/// All streams of a connection together.
const CONNECTION_WINDOW: u32 = 4 << 20;
