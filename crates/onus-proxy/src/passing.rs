//! A message on its way through the proxy: what is changed in it whoever gets it.

use http::header::{HeaderValue, SEC_WEBSOCKET_ACCEPT, TRANSFER_ENCODING};
use http::{Method, Request, Response, StatusCode};
use hyper::ext::Protocol;

use crate::answer::OwnError;
use crate::busy::Busy;
use crate::hop;
use crate::tunnel::Tunnel;

/// A request that is passed on, until its answer comes back.
pub(crate) struct Passing {
    /// Of a request that asks for one, as few do.
    tunnel: Option<Tunnel>,
    is_connect: bool,
    /// Whether it is a WebSocket over HTTP/2.
    is_extended: bool,
}

impl Passing {
    /// Makes a request ready for the next connection.
    pub(crate) fn through<B>(request: &mut Request<B>) -> Self {
        let is_connect = *request.method() == Method::CONNECT;
        if !is_connect && !hop::is_any_of_connection(request.headers()) {
            return Self { tunnel: None, is_connect, is_extended: false };
        }
        let is_extended = is_connect && request.extensions().get::<Protocol>().is_some();
        let tunnel = Tunnel::asked(request);
        match tunnel {
            Some(_) => hop::strip_but_upgrade(request.headers_mut()),
            None => hop::strip(request.headers_mut()),
        }
        Self { tunnel, is_connect, is_extended }
    }

    /// Makes its answer ready for the connection that it came from, which is one of `connections`.
    pub(crate) fn back<R>(
        self,
        response: &mut Response<R>,
        tunnels: &Busy,
        connections: &Busy,
    ) -> Result<(), OwnError> {
        // Only chunks are taken off here, and nothing would say that there is more to take off.
        let is_plain = |coding: &HeaderValue| {
            let coding = coding.as_bytes();
            coding.eq_ignore_ascii_case(b"chunked") || coding.eq_ignore_ascii_case(b"identity")
        };
        if !response.headers().get_all(TRANSFER_ENCODING).iter().all(is_plain) {
            return Err(OwnError::meaningless("the answer has a transfer coding beside chunks"));
        }
        match self.tunnel {
            Some(tunnel) => tunnel.open(self.is_connect, response, [tunnels, connections]),
            None if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                return Err(OwnError::meaningless("the callee switches protocols unasked"));
            }
            None => {}
        }
        if self.is_extended && response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // Of a callee that was asked over HTTP/1.1; over HTTP/2 a tunnel begins with success.
            *response.status_mut() = StatusCode::OK;
            response.headers_mut().remove(SEC_WEBSOCKET_ACCEPT);
            hop::strip(response.headers_mut());
        } else if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            hop::strip_but_upgrade(response.headers_mut());
        } else {
            hop::strip(response.headers_mut());
        }
        Ok(())
    }
}
