//! Connections that stop being HTTP: WebSocket and other upgrades, and CONNECT.

use http::header::UPGRADE;
use http::{Method, Request, Response, StatusCode};
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::busy::Busy;

/// The client's side of a connection that may become a tunnel.
pub(crate) struct Tunnel(OnUpgrade);

impl Tunnel {
    /// Of a request that asks for a tunnel; others are not looked at twice.
    pub(crate) fn asked<B>(request: &mut Request<B>) -> Option<Self> {
        let asks = request.method() == Method::CONNECT || request.headers().contains_key(UPGRADE);
        asks.then(|| Self(upgrade::on(request)))
    }

    /// Passes bytes to and fro from now on, if the answer says so, until both sides have ended.
    ///
    /// Nothing is kept of what passes, and nothing of it is retried.
    pub(crate) fn open<B>(self, is_connect: bool, response: &mut Response<B>, tunnels: &Busy) {
        let status = response.status();
        if status != StatusCode::SWITCHING_PROTOCOLS && !(is_connect && status.is_success()) {
            return;
        }
        let callee = upgrade::on(response);
        let open = tunnels.start();
        tokio::spawn(async move {
            let _open = open;
            // Who has gone before the tunnel was open needs none.
            let Ok((client, callee)) = tokio::try_join!(self.0, callee) else { return };
            // How a tunnel ends is seen at its ends.
            let _ = copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(callee)).await;
        });
    }
}
