//! How connections to the instances of a callee are made.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::error::PoolError;

/// How connections to the instances of a callee are made.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    /// The longest that it may take.
    pub(crate) timeout: Duration,
}

impl Dial {
    /// Connects to an instance.
    pub(super) async fn connect(&self, address: SocketAddr) -> Result<TcpStream, PoolError> {
        match timeout(self.timeout, TcpStream::connect(address)).await {
            Err(_) => Err(PoolError::ConnectTimeout { address }),
            Ok(Err(source)) => Err(PoolError::Connect { address, source }),
            Ok(Ok(stream)) => {
                // Without it a small request waits for an acknowledgement; slower, not wrong.
                let _ = stream.set_nodelay(true);
                Ok(stream)
            }
        }
    }
}

/// The resolver found nothing, which some systems do not call an error.
pub(super) fn nothing_found() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the name has no address")
}
