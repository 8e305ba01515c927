//! HTTP as the applications and the client of the tests speak it.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client as Pool};
use hyper_util::rt::TokioExecutor;

/// How all of a chain talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    Grpc,
    /// With the status in trailers, behind a message.
    GrpcTrailers,
    /// With a head of its own, and the status in trailers; no message where it failed.
    GrpcLate,
}

impl Protocol {
    pub(crate) fn is_http2(self) -> bool {
        self != Self::Http1
    }

    fn is_grpc(self) -> bool {
        matches!(self, Self::Grpc | Self::GrpcTrailers | Self::GrpcLate)
    }
}

/// What a client has seen of an answer.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) grpc_status: Option<u16>,
    pub(crate) headers: HeaderMap,
}

impl Seen {
    /// The line of that name, in the trailers too.
    pub(crate) fn line(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn failed(&self) -> bool {
        self.status >= 500 || self.grpc_status.is_some_and(|status| status != 0)
    }
}

/// A client without retries.
#[derive(Clone)]
pub(crate) struct Client {
    protocol: Protocol,
    pool: Pool<HttpConnector, Full<Bytes>>,
}

impl Client {
    pub(crate) fn new(protocol: Protocol) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let mut pool = Pool::builder(TokioExecutor::new());
        Self { protocol, pool: pool.http2_only(protocol.is_http2()).build(connector) }
    }

    /// Sends a request with these headers, and reads its answer to the end.
    pub(crate) async fn send(
        &self,
        to: SocketAddr,
        headers: &HeaderMap,
    ) -> Result<Seen, legacy::Error> {
        let uri = format!("http://{to}/test.Chain/Call");
        let mut request = Request::builder().uri(uri).body(Full::default()).unwrap();
        *request.headers_mut() = headers.clone();
        if self.protocol.is_grpc() {
            *request.method_mut() = Method::POST;
            let grpc = "application/grpc".parse().unwrap();
            request.headers_mut().insert("content-type", grpc);
            request.headers_mut().insert("te", "trailers".parse().unwrap());
            *request.body_mut() = Full::new(Bytes::from_static(&[0, 0, 0, 0, 0]));
        }
        let (head, body) = self.pool.request(request).await?.into_parts();
        let mut headers = head.headers;
        // A body that breaks leaves the status that the head has.
        if let Ok(body) = body.collect().await
            && let Some(trailers) = body.trailers()
        {
            headers.extend(trailers.clone());
        }
        let grpc_status = headers.get("grpc-status").map(|s| s.to_str().unwrap().parse().unwrap());
        Ok(Seen { status: head.status.as_u16(), grpc_status, headers })
    }
}

/// What applications answer with.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The answer to a request.
pub(crate) fn answer(protocol: Protocol, failed: bool) -> Answer {
    let status = HeaderValue::from_static(if failed { "14" } else { "0" });
    let message = Full::new(Bytes::from_static(&[0, 0, 0, 0, 0]));
    let trailers = [(HeaderName::from_static("grpc-status"), status.clone())];
    let trailers = ready(Some(Ok(trailers.into_iter().collect())));
    let mut response = Response::new(match protocol {
        Protocol::GrpcLate if failed => Empty::new().with_trailers(trailers).boxed(),
        Protocol::GrpcTrailers | Protocol::GrpcLate => message.with_trailers(trailers).boxed(),
        Protocol::Http1 | Protocol::Http2 | Protocol::Grpc => Empty::new().boxed(),
    });
    let grpc = HeaderValue::from_static("application/grpc");
    match protocol {
        Protocol::Grpc => {
            response.headers_mut().insert("content-type", grpc);
            response.headers_mut().insert("grpc-status", status);
        }
        Protocol::GrpcTrailers | Protocol::GrpcLate => {
            response.headers_mut().insert("content-type", grpc);
        }
        Protocol::Http1 | Protocol::Http2 if failed => {
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        }
        Protocol::Http1 | Protocol::Http2 => {}
    }
    response
}
