//! A listening socket and its connections.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use onus::replay::BoxError;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use crate::busy::Busy;
use crate::client_error::ClientErrors;
use crate::connection::{self, Server};
use crate::interim::InterimCounts;

/// What answers the requests of a listener.
pub(crate) trait Front: Clone + Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;

    /// What answers the requests of one client.
    fn of(&self, client: SocketAddr, is_tls: bool) -> Self {
        let _ = (client, is_tls);
        self.clone()
    }

    /// Answers a request.
    fn answer(
        self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Infallible>> + Send;
}

/// What is counted of a listener.
#[derive(Debug, Default)]
pub(crate) struct ListenerCounts {
    /// Connections that are there.
    pub(crate) connections: Busy,
    /// Requests that are not answered to the end.
    pub(crate) requests: Busy,
    /// Connections that found no room.
    pub(crate) refused: AtomicU64,
    /// Connections that were closed because a head did not come in time.
    pub(crate) slow: AtomicU64,
    /// Connections whose TLS handshake failed.
    pub(crate) handshakes_failed: AtomicU64,
    /// What clients did wrong.
    pub(crate) client_errors: ClientErrors,
    /// What became of interim answers to its clients of HTTP/1.1.
    pub(crate) interims: Arc<InterimCounts>,
}

/// How far a listener has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It serves.
    Serving,
    /// It accepts nothing more, and tells its clients that their connections end.
    Draining {
        /// How long those are kept that have no request, over which nothing can be told.
        idle: Duration,
    },
}

/// Serves connections until the stage says that it is over, and then until they have ended.
pub(crate) async fn serve<F: Front>(
    listener: TcpListener,
    front: F,
    server: Arc<Server>,
    counts: Arc<ListenerCounts>,
    mut stage: watch::Receiver<Stage>,
) {
    let mut connections = JoinSet::new();
    let stages = stage.clone();
    loop {
        let ends = async {
            drains(&mut stage).await;
            // Whoever has connected by now is noticed, and comes first.
            yield_now().await;
        };
        let accepted = tokio::select! {
            biased;
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
            // Whom nobody has accepted by then the system resets.
            () = ends => break,
        };
        match accepted {
            Ok((stream, client)) => match counts.connections.try_start(server.limits.connections) {
                Some(place) => {
                    let (front, server) = (front.of(client, server.has_tls()), server.clone());
                    let (counts, stages) = (counts.clone(), stages.clone());
                    connections.spawn(async move {
                        connection::serve(stream, front, server, counts, stages).await;
                        drop(place);
                    });
                }
                // Closed at once: whoever waits for room has other instances to ask.
                None => {
                    counts.refused.fetch_add(1, Ordering::Relaxed);
                }
            },
            // A connection that broke before it was accepted is its client's affair. Where there
            // are no files left, others have to end first.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                counts.refused.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%error, "onus: a connection cannot be accepted");
                sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Ready when the listener drains, with how long connections are kept that have no request.
pub(crate) async fn drains(stage: &mut watch::Receiver<Stage>) -> Duration {
    match stage.wait_for(|&stage| stage != Stage::Serving).await.as_deref() {
        Ok(&Stage::Draining { idle }) => idle,
        // A proxy that is gone without a word is over too.
        Ok(Stage::Serving) | Err(_) => Duration::ZERO,
    }
}

/// How long to wait where the system has no room for a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::Ipv4Addr;

    use http_body_util::Empty;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpStream;

    use super::*;
    use crate::connection::ServerLimits;

    /// Answers everything.
    #[derive(Clone)]
    struct Answers;

    impl Front for Answers {
        type Body = Empty<Bytes>;

        async fn answer(self, _: Request<Incoming>) -> Result<Response<Self::Body>, Infallible> {
            Ok(Response::new(Empty::new()))
        }
    }

    const LIMITS: ServerLimits = ServerLimits {
        connections: 100,
        headers: 100,
        header_bytes: 16 << 10,
        header_timeout: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(60),
        streams: 100,
        resets: 100,
        idle_frames: 100,
    };

    #[tokio::test]
    async fn whoever_has_connected_is_served_before_it_ends() {
        // S93
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        // Nobody accepts them: the listener is in the thread of the test.
        let clients: Vec<_> = std::iter::repeat_with(|| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
            stream.set_nonblocking(true).unwrap();
            TcpStream::from_std(stream).unwrap()
        })
        .take(32)
        .collect();
        let stage = watch::Sender::new(Stage::Draining { idle: Duration::from_secs(60) });
        let server = Arc::new(Server::new(LIMITS, None));
        let served = serve(listener, Answers, server, Arc::default(), stage.subscribe());
        let served = tokio::spawn(served);
        for mut client in clients {
            let mut answer = [0; 15];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200 OK");
        }
        served.await.unwrap();
    }
}
