//! Proxies, and clients of them.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use onus_proxy::{ConfigFile, Proxy, ProxyConfig};
use tokio::net::TcpStream;

/// A proxy with this configuration.
pub(crate) async fn proxy(yaml: &str) -> Proxy {
    let file = ConfigFile::parse(yaml).expect("a configuration");
    Proxy::start(&ProxyConfig::new(file).expect("a sound configuration")).await.expect("a proxy")
}

/// A proxy beside the application at `app`, with a callee `peer` of which more is said.
pub(crate) async fn between(app: SocketAddr, peer: &[SocketAddr], more: &str) -> Proxy {
    let addresses: Vec<_> = peer.iter().map(|address| format!("\"{address}\"")).collect();
    let addresses = addresses.join(", ");
    proxy(&format!(
        "service: checkout\nmode: enforce\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{app}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         callees: {{peer: {{address: [{addresses}]{more}}}}}\n"
    ))
    .await
}

/// The configuration of a service that tries each call twice and has one callee.
pub(crate) fn chained(
    service: &str,
    app: SocketAddr,
    callee: Option<(&str, SocketAddr)>,
) -> String {
    let callees = callee.map_or_else(String::new, |(name, address)| {
        format!("callees: {{{name}: {{address: \"{address}\", {TWICE}}}}}\n")
    });
    format!(
        "service: {service}\nmode: enforce\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{app}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n{callees}"
    )
}

/// Two attempts, the second nearly at once.
pub(crate) const TWICE: &str = "retry: {attempts: 2, no-budget: true, no-gate: true, no-probes: true, \
                                backoff-base: 1ms, backoff-max: 2ms}";

/// A client that speaks HTTP/2 to a proxy.
#[derive(Clone)]
pub(crate) struct Client(http2::SendRequest<Sent>);

type Sent = UnsyncBoxBody<Bytes, std::convert::Infallible>;

impl Client {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.set_nodelay(true).expect("it is a TCP stream");
        let io = TokioIo::new(stream);
        let handshake = http2::handshake(TokioExecutor::new(), io).await;
        let (sender, connection) = handshake.expect("it speaks HTTP/2");
        tokio::spawn(connection);
        Self(sender)
    }

    /// A request for `path` of the callee `peer`.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> hyper::Result<http::Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(format!("http://peer{path}"));
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        let body = match body {
            "" => Empty::new().boxed_unsync(),
            text => Full::new(Bytes::from(text.to_owned())).boxed_unsync(),
        };
        self.0.clone().send_request(request.body(body).expect("a request")).await
    }
}
