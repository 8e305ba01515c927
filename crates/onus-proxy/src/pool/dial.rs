//! How connections to the instances of a callee are made.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::error::PoolError;
use crate::stream::{Stream, set_up};
use crate::tls::ClientTls;

/// How connections to the instances of a callee are made.
#[derive(Clone)]
pub(crate) struct Dial {
    /// The longest that it may take.
    pub(crate) timeout: Duration,
    pub(crate) tls: Option<Arc<ClientTls>>,
    /// Where the proxy itself listens for what it would send there.
    pub(crate) own: Arc<[SocketAddr]>,
}

impl Dial {
    /// Connects to an instance, to speak HTTP/2 or HTTP/1.1 with it.
    pub(super) async fn connect(
        &self,
        address: SocketAddr,
        is_http2: bool,
    ) -> Result<Stream, PoolError> {
        match timeout(self.timeout, self.open(address, is_http2)).await {
            Err(_) => Err(PoolError::ConnectTimeout { address }),
            Ok(Err(source)) if source.kind() == LOOP => Err(PoolError::Loop { address }),
            Ok(Err(source)) => Err(PoolError::Connect { address, source }),
            Ok(Ok(stream)) => Ok(stream),
        }
    }

    async fn open(&self, address: SocketAddr, is_http2: bool) -> io::Result<Stream> {
        if self.own.iter().any(|own| is_at(address, *own)) {
            return Err(LOOP.into());
        }
        let stream = TcpStream::connect(address).await?;
        // A connection to this machine has one address at both ends.
        if stream.local_addr()?.ip() == address.ip()
            && self.own.iter().any(|own| is_any(address, *own))
        {
            return Err(LOOP.into());
        }
        set_up(&stream);
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let config = if is_http2 { tls.http2.config() } else { tls.http1.config() };
        let stream = TlsConnector::from(config).connect(tls.name.clone(), stream).await?;
        if is_http2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(io::Error::other("it does not speak HTTP/2"));
        }
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// Whether a connection to `address` arrives at a listener that is bound to `own`.
fn is_at(address: SocketAddr, own: SocketAddr) -> bool {
    let is_same = address.port() == own.port() && address.ip() == own.ip();
    is_same || (address.ip().is_loopback() && is_any(address, own))
}

/// Whether it does where `address` is one of this machine.
fn is_any(address: SocketAddr, own: SocketAddr) -> bool {
    own.ip().is_unspecified() && address.port() == own.port()
}

/// What a connection to the proxy itself fails with; nothing else does.
const LOOP: io::ErrorKind = io::ErrorKind::Deadlock;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_met_at_its_address() {
        for (address, own, expected) in [
            ("127.0.0.1:7461", "127.0.0.1:7461", true),
            ("127.0.0.1:7461", "0.0.0.0:7461", true),
            ("[::1]:7461", "[::]:7461", true),
            ("127.0.0.1:7460", "127.0.0.1:7461", false),
            ("127.0.0.2:7461", "127.0.0.1:7461", false),
            ("10.0.0.7:7461", "0.0.0.0:7461", false),
        ] {
            assert_eq!(
                is_at(address.parse().unwrap(), own.parse().unwrap()),
                expected,
                "{address} {own}"
            );
        }
    }
}
