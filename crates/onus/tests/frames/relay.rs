//! A service in the middle: the inbound layer around hyper's server, and below it hyper's pooled
//! client under the outbound layer.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use onus::hyper::HyperErrors;
use onus::replay::ReplayBody;
use onus::{Onus, OutboundService, RetryPolicy};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt, service_fn};

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
}

/// hyper's pooled client under the outbound layer.
pub(crate) type Wrapped<B> = OutboundService<Client<HttpConnector, ReplayBody<B>>, HyperErrors>;

/// The client of the callee `peer`.
pub(crate) fn client<B>(onus: &Onus, speaks: Speaks) -> Wrapped<B>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<onus::replay::BoxError>,
{
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let mut builder = Client::builder(TokioExecutor::new());
    builder.http2_only(speaks == Speaks::Http2).http1_preserve_header_case(true);
    onus.outbound("peer").hyper(builder.build(connector))
}

/// A caller without Onus.
pub(crate) fn plain<B>(speaks: Speaks) -> Client<HttpConnector, B>
where
    B: http_body::Body + Send,
    B::Data: Send,
{
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).http2_only(speaks == Speaks::Http2).build(connector)
}

/// A service that enforces and may call `peer` under this policy.
pub(crate) fn checkout(policy: RetryPolicy) -> Onus {
    let policy = policy.no_probes();
    Onus::builder("checkout").enforce().retry("peer", policy).build().expect("a right policy")
}

/// Two attempts of any method, the second at once.
pub(crate) fn twice() -> RetryPolicy {
    safe_twice().unsafe_methods()
}

/// Two attempts of the methods that are safe, the second at once.
pub(crate) fn safe_twice() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().backoff(Duration::ZERO, Duration::ZERO)
}

/// A service that passes each request on to the peer at `address`, and the answer back as it is.
/// Without an answer it is a 502.
pub(crate) async fn relay(
    onus: &Onus,
    from: Speaks,
    to: Speaks,
    address: SocketAddr,
) -> SocketAddr {
    let client = client::<Incoming>(onus, to);
    let handler = service_fn(move |request: Request<Incoming>| {
        let call = client.clone().oneshot(towards(address, request));
        async move {
            Ok::<_, Infallible>(match call.await {
                Ok(response) => response.map(|body| body.map_err(Into::into).boxed_unsync()),
                Err(_) => {
                    let body = Empty::<Bytes>::new().map_err(Into::into).boxed_unsync();
                    let mut response: Response<Passed> = Response::new(body);
                    *response.status_mut() = StatusCode::BAD_GATEWAY;
                    response
                }
            })
        }
    });
    let service = TowerToHyperService::new(onus.inbound().layer(handler));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let own = listener.local_addr().expect("it is bound");
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("connections can be accepted");
            stream.set_nodelay(true).expect("it is a TCP stream");
            let (stream, service) = (TokioIo::new(stream), service.clone());
            match from {
                Speaks::Http1 => {
                    let mut server = http1::Builder::new();
                    server.preserve_header_case(true).timer(TokioTimer::new());
                    tokio::spawn(server.serve_connection(stream, service));
                }
                Speaks::Http2 => {
                    let server = http2::Builder::new(TokioExecutor::new());
                    tokio::spawn(server.serve_connection(stream, service));
                }
            }
        }
    });
    own
}

/// The body of an answer that is passed on.
type Passed = http_body_util::combinators::UnsyncBoxBody<Bytes, onus::replay::BoxError>;

/// The same request to another address.
fn towards(address: SocketAddr, request: Request<Incoming>) -> Request<Incoming> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = Uri::try_from(format!("http://{address}{path}")).expect("an address and a path");
    head.version = http::Version::HTTP_11;
    head.headers.remove(http::header::HOST);
    Request::from_parts(head, body)
}
