//! A place on a connection where one request at a time can be sent.

use std::future::Future;
use std::net::SocketAddr;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::call::{Call, Miss};
use crate::peers::connection::{CONNECTION_WINDOW, Protocol, STREAM_WINDOW};

/// A place where one request at a time can be sent.
pub(crate) trait Line: Send + 'static {
    /// Sends a request and reads its answer to the end.
    fn exchange(&mut self, call: &Call) -> impl Future<Output = Result<(), Miss>> + Send;
}

/// A connection of HTTP/1.1, or a share of one of HTTP/2.
#[derive(Debug)]
pub(crate) enum Wire {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Line for Wire {
    async fn exchange(&mut self, call: &Call) -> Result<(), Miss> {
        let request = call.request();
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await.map_err(|error| Miss::broken(&error))?;
                sender.send_request(request).await
            }
            Self::Http2(sender) => {
                sender.ready().await.map_err(|error| Miss::broken(&error))?;
                sender.send_request(request).await
            }
        };
        call.check(response.map_err(|error| Miss::broken(&error))?).await
    }
}

/// Opens connections, each with as many lines as its protocol allows of `streams`.
pub(crate) async fn connect(
    to: SocketAddr,
    protocol: Protocol,
    connections: usize,
    streams: usize,
) -> anyhow::Result<Vec<Wire>> {
    let mut lines = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(to).await.with_context(|| format!("connect to {to}"))?;
        stream.set_nodelay(true)?;
        let io = TokioIo::new(stream);
        match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(io).await?;
                tokio::spawn(connection);
                lines.push(Wire::Http1(sender));
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .handshake(io)
                    .await?;
                tokio::spawn(connection);
                lines.extend((0..streams).map(|_| Wire::Http2(sender.clone())));
            }
        }
    }
    Ok(lines)
}
