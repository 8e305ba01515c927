//! Connections that stop being HTTP: WebSocket and other upgrades, and CONNECT.

use http::header::{CONNECTION, HeaderValue, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{Method, Request, Response, StatusCode, Version};
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

/// Whether a request asks that its connection becomes something else (RFC 9110, section 7.8).
fn asks_upgrade<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let lines = || headers.get_all(UPGRADE).iter().filter_map(|line| line.to_str().ok());
    headers.contains_key(UPGRADE)
        && request.version() == Version::HTTP_11
        && headers.get(CONNECTION).is_some_and(|asked| asked == "upgrade")
        && lines().flat_map(|line| line.split(',')).all(|protocol| is_foreign(protocol.trim()))
}

/// Whether this is one protocol, and another than HTTP. In a tunnel of HTTP requests would pass that
/// nobody here has looked at; a callee that speaks another version is spoken to by configuration.
pub(crate) fn is_foreign(protocol: &str) -> bool {
    let name = protocol.split_once('/').map_or(protocol, |(name, _version)| name);
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_http = ["h2", "h2c", "http", "tls"].iter().any(|own| own.eq_ignore_ascii_case(name));
    !name.is_empty() && name.bytes().all(is_token) && !is_http
}

/// The client's side of a connection that may become a tunnel.
pub(crate) struct Tunnel(OnUpgrade);

impl Tunnel {
    /// Of a request that asks for a tunnel; others are not looked at twice.
    pub(crate) fn asked<B>(request: &mut Request<B>) -> Option<Self> {
        let asks = *request.method() == Method::CONNECT || asks_upgrade(request);
        asks.then(|| Self(upgrade::on(request)))
    }

    /// Passes bytes to and fro from now on, if the answer says so, until both sides have ended.
    ///
    /// Nothing is kept of what passes, and nothing of it is retried.
    /// It stays one of the client's connections, by which both sides of it are bounded.
    pub(crate) fn open<B>(
        self,
        is_connect: bool,
        response: &mut Response<B>,
        [tunnels, connections]: [&Busy; 2],
    ) {
        let status = response.status();
        if status != StatusCode::SWITCHING_PROTOCOLS && !(is_connect && status.is_success()) {
            return;
        }
        let callee = upgrade::on(response);
        let open = [tunnels.start(), connections.start()];
        tokio::spawn(async move {
            let _open = open;
            // Who has gone before the tunnel was open needs none.
            let Ok((client, callee)) = tokio::try_join!(self.0, callee) else { return };
            // How a tunnel ends is seen at its ends.
            let _ = copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(callee)).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_asked_for_by_all_that_the_standard_takes() {
        fn check(version: Version, lines: &[(&str, &str)], asks: bool) {
            let mut request = Request::get("/").version(version);
            for (name, value) in lines {
                request = request.header(*name, *value);
            }
            assert_eq!(asks_upgrade(&request.body(()).unwrap()), asks, "{version:?} {lines:?}");
        }
        const H1: Version = Version::HTTP_11;
        let asked = ("connection", "upgrade");
        check(H1, &[asked, ("upgrade", "websocket")], true);
        check(H1, &[asked, ("upgrade", "SPDY/3.1, websocket")], true);
        check(H1, &[("upgrade", "websocket")], false);
        check(H1, &[asked], false);
        check(Version::HTTP_10, &[asked, ("upgrade", "websocket")], false);
        for http in ["h2c", "H2C", "HTTP/2.0", "TLS/1.3", "websocket, h2c", "", "a b"] {
            check(H1, &[asked, ("upgrade", http)], false);
        }
        check(H1, &[asked, ("upgrade", "websocket"), ("upgrade", "h2c")], false);
    }
}
