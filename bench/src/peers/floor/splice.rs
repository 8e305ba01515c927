//! Bytes from one socket to another, and back: what the kernel costs.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};

/// Passes on what it gets until it is stopped.
pub(crate) async fn serve(listener: TcpListener, to: SocketAddr) {
    loop {
        let Ok((caller, _)) = listener.accept().await else { continue };
        tokio::spawn(connection(caller, to));
    }
}

/// How a connection ends is seen at both of its ends.
async fn connection(mut caller: TcpStream, to: SocketAddr) {
    let Ok(mut callee) = TcpStream::connect(to).await else { return };
    let _ = caller.set_nodelay(true);
    let _ = callee.set_nodelay(true);
    let _ = copy_bidirectional_with_sizes(&mut caller, &mut callee, BUFFER, BUFFER).await;
}

/// With the 8 KiB of `copy_bidirectional` it would be no floor for large bodies.
const BUFFER: usize = 64 << 10;
