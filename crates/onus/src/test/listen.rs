//! A scripted callee on a socket.

use std::io;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use super::callee::Callee;

impl Callee {
    /// Listens on loopback, for clients that need an address, until the runtime ends. Returns the
    /// URL without a path; HTTP/1 and HTTP/2 are served, without TLS.
    ///
    /// On a socket every answer that is none breaks off: the connection, or the stream of HTTP/2.
    ///
    /// # Errors
    ///
    /// Where there is no socket to be had.
    pub async fn listen(&self) -> io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let service = TowerToHyperService::new(self.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    // The last small packet would otherwise wait for an acknowledgement.
                    let _ = stream.set_nodelay(true);
                    let server = auto::Builder::new(TokioExecutor::new());
                    // A client may go at any time.
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(url)
    }
}
