//! hyper between two sockets, with a pool and nothing else: what Onus adds to is this.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

use crate::peers::connection::{self, CONNECTION_WINDOW, STREAM_WINDOW};

/// Passes requests on until it is stopped.
pub(crate) async fn serve(listener: TcpListener, to: SocketAddr) {
    let pool = Arc::new(Pool { to, http1: Mutex::default(), http2: tokio::sync::Mutex::default() });
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let pool = pool.clone();
        let service = service_fn(move |request| answer(pool.clone(), request));
        tokio::spawn(connection::serve(stream, service));
    }
}

type Answer = Response<Either<Incoming, Empty<Bytes>>>;

async fn answer(pool: Arc<Pool>, request: Request<Incoming>) -> anyhow::Result<Answer> {
    Ok(match pool.send(request).await {
        Ok(response) => response.map(Either::Left),
        Err(_) => {
            let mut response = Response::new(Either::Right(Empty::new()));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    })
}

struct Pool {
    to: SocketAddr,
    http1: Mutex<VecDeque<http1::SendRequest<Incoming>>>,
    http2: tokio::sync::Mutex<Option<http2::SendRequest<Incoming>>>,
}

impl Pool {
    async fn send(&self, request: Request<Incoming>) -> anyhow::Result<Response<Incoming>> {
        if request.version() == Version::HTTP_2 {
            return Ok(self.http2().await?.send_request(request).await?);
        }
        let free = self.free();
        let mut sender = match free {
            Some(sender) => sender,
            None => self.connect_http1().await?,
        };
        let response = sender.send_request(request).await?;
        // It is ready again when the answer has been read.
        self.idle().push_back(sender);
        Ok(response)
    }

    /// A connection whose last answer has been read; the longest unused one is asked first.
    fn free(&self) -> Option<http1::SendRequest<Incoming>> {
        let mut idle = self.idle();
        for _ in 0..idle.len() {
            let sender = idle.pop_front()?;
            if sender.is_ready() {
                return Some(sender);
            }
            if !sender.is_closed() {
                idle.push_back(sender);
            }
        }
        None
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<http1::SendRequest<Incoming>>> {
        self.http1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect_http1(&self) -> anyhow::Result<http1::SendRequest<Incoming>> {
        let (sender, connection) = http1::handshake(self.connect().await?).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn http2(&self) -> anyhow::Result<http2::SendRequest<Incoming>> {
        let mut known = self.http2.lock().await;
        if let Some(sender) = known.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(self.connect().await?)
            .await?;
        tokio::spawn(connection);
        Ok(known.insert(sender).clone())
    }

    async fn connect(&self) -> anyhow::Result<TokioIo<TcpStream>> {
        let stream = TcpStream::connect(self.to).await?;
        stream.set_nodelay(true)?;
        Ok(TokioIo::new(stream))
    }
}
