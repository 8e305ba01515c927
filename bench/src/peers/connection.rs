//! A connection as a server sees it, in the protocol that its client begins with.

use std::error::Error;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without asking first.
    Http2,
}

/// The windows of HTTP/2, as Onus has them: 1 MiB a stream, 4 MiB a connection.
pub(crate) const STREAM_WINDOW: u32 = 1 << 20;
pub(crate) const CONNECTION_WINDOW: u32 = 4 << 20;

/// Serves a connection to its end; how it ends is seen by its client.
pub(crate) async fn serve<S, B>(stream: TcpStream, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    // Without it a small answer waits for an acknowledgement; slower, not wrong.
    let _ = stream.set_nodelay(true);
    let Ok(protocol) = begun(&stream).await else { return };
    let io = TokioIo::new(stream);
    let _ = match protocol {
        Protocol::Http1 => {
            let mut server = http1::Builder::new();
            server.auto_date_header(false).serve_connection(io, service).await
        }
        Protocol::Http2 => {
            let mut server = http2::Builder::new(TokioExecutor::new());
            server
                .auto_date_header(false)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .serve_connection(io, service)
                .await
        }
    };
}

/// What the client of a connection speaks.
async fn begun(stream: &TcpStream) -> std::io::Result<Protocol> {
    let mut first = [0; 3];
    // No method of HTTP/1.1 begins like the preface of HTTP/2, so a part of it decides as well.
    let read = stream.peek(&mut first).await?;
    let is_preface = read > 0 && b"PRI".starts_with(&first[..read]);
    Ok(if is_preface { Protocol::Http2 } else { Protocol::Http1 })
}
