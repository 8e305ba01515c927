//! Connections that stop being HTTP: WebSocket and other upgrades, and CONNECT.

use http::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use hyper::ext::Protocol;
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::busy::Busy;

/// Makes an upgrade of HTTP/1.1 of a WebSocket over HTTP/2 (RFC 8441, section 5); of any other
/// request nothing.
pub(crate) fn to_upgrade<B>(request: &mut Request<B>) {
    if *request.method() != Method::CONNECT {
        return;
    }
    let Some(protocol) = request.extensions_mut().remove::<Protocol>() else { return };
    let Ok(protocol) = HeaderValue::from_str(protocol.as_str()) else { return };
    *request.method_mut() = Method::GET;
    let headers = request.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
    headers.insert(SEC_WEBSOCKET_KEY, websocket_key());
}

/// 16 bytes in base 64, which the callee answers with proof that it has read them.
fn websocket_key() -> HeaderValue {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = fastrand::u128(..);
    let mut key = [b'='; 24];
    for (at, digit) in key.iter_mut().take(22).enumerate() {
        // The last digit has two bits of the 16 bytes.
        let digit_bits = if at == 21 { (bits & 0b11) << 4 } else { bits & 0b11_1111 };
        *digit = DIGITS[digit_bits as usize];
        bits >>= 6;
    }
    HeaderValue::from_bytes(&key).unwrap_or(HeaderValue::from_static("AAAAAAAAAAAAAAAAAAAAAA=="))
}

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
