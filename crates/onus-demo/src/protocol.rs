//! How services and their clients talk: what a request looks like, and where an answer says how it
//! went.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, response,
};
use http_body_util::combinators::WithTrailers;
use http_body_util::{BodyExt, Either, Full};

/// How services and their clients talk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 from the first byte, without TLS.
    Http2,
    /// gRPC over such an HTTP/2: one unary method with empty messages.
    Grpc,
}

/// The status of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Of HTTP.
    Http(u16),
    /// Of gRPC.
    Grpc(u16),
}

/// The body of an answer.
pub(crate) type AnswerBody =
    Either<Full<Bytes>, WithTrailers<Full<Bytes>, Ready<Option<Result<HeaderMap, Infallible>>>>>;

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Http1, Self::Http2, Self::Grpc];

    pub(crate) const fn is_http2(self) -> bool {
        match self {
            Self::Http1 => false,
            Self::Http2 | Self::Grpc => true,
        }
    }

    /// A request to the service at `address` with this content.
    pub(crate) fn request(self, address: SocketAddr, content: &[u8]) -> Request<Full<Bytes>> {
        let path = match self {
            Self::Http1 | Self::Http2 => "/",
            Self::Grpc => METHOD,
        };
        let uri = Uri::builder().scheme("http").authority(address.to_string()).path_and_query(path);
        let mut request = Request::new(Full::new(self.body(content)));
        *request.uri_mut() = uri.build().unwrap_or_default();
        match self {
            Self::Http1 | Self::Http2 => {}
            Self::Grpc => {
                *request.method_mut() = Method::POST;
                request.headers_mut().insert(CONTENT_TYPE, GRPC);
                request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
            }
        }
        request
    }

    /// What carries this content: in gRPC a message with its length before it.
    pub(crate) fn body(self, content: &[u8]) -> Bytes {
        match self {
            Self::Http1 | Self::Http2 => Bytes::copy_from_slice(content),
            Self::Grpc => {
                let mut message = BytesMut::with_capacity(PREFIX + content.len());
                message.put_u8(0);
                message.put_u32(content.len() as u32);
                message.put_slice(content);
                message.freeze()
            }
        }
    }

    /// The answer that says this. In gRPC an error is one header block, as servers send it where no
    /// message went before, or, with `head_first`, a head and trailers.
    pub(crate) fn answer(self, status: StatusCode, head_first: bool) -> Response<AnswerBody> {
        let code = match self {
            Self::Http1 | Self::Http2 => {
                let mut response = Response::new(Either::Left(Full::default()));
                *response.status_mut() = status;
                return response;
            }
            Self::Grpc => grpc_code(status),
        };
        let mut block = HeaderMap::new();
        block.insert(GRPC_STATUS, code.into());
        let with_trailers = |body: Bytes, block| {
            Either::Right(Full::new(body).with_trailers(ready(Some(Ok(block)))))
        };
        let mut response = if status.is_success() {
            Response::new(with_trailers(self.body(&[]), block))
        } else if head_first {
            Response::new(with_trailers(Bytes::new(), block))
        } else {
            let mut response = Response::new(Either::Left(Full::default()));
            *response.headers_mut() = block;
            response
        };
        response.headers_mut().insert(CONTENT_TYPE, GRPC);
        response
    }

    /// What an answer says that has been read to its end.
    pub(crate) fn status(self, head: &response::Parts, trailers: Option<&HeaderMap>) -> Status {
        match self {
            Self::Http1 | Self::Http2 => Status::Http(head.status.as_u16()),
            Self::Grpc => {
                let code = grpc_status(&head.headers).or_else(|| trailers.and_then(grpc_status));
                Status::Grpc(code.unwrap_or(UNKNOWN))
            }
        }
    }
}

impl Status {
    pub(crate) const fn is_ok(self) -> bool {
        match self {
            Self::Http(status) => matches!(status, 200..=299),
            Self::Grpc(code) => code == 0,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(status) => write!(f, "status {status}"),
            Self::Grpc(code) => write!(f, "gRPC status {code}"),
        }
    }
}

/// Whether an answer is an error, as far as its head says: what a proxy sees.
pub(crate) fn is_error<B>(response: &Response<B>) -> bool {
    response.status().is_server_error() || grpc_status(response.headers()).is_some_and(|s| s != 0)
}

fn grpc_status(block: &HeaderMap) -> Option<u16> {
    block.get(GRPC_STATUS)?.to_str().ok()?.parse().ok()
}

/// Errors all of them, to gRPC and to the protocol of ownership.
fn grpc_code(status: StatusCode) -> u16 {
    match status {
        StatusCode::OK => 0,
        StatusCode::BAD_GATEWAY => UNAVAILABLE,
        StatusCode::NOT_IMPLEMENTED => DATA_LOSS,
        _ => INTERNAL,
    }
}

const METHOD: &str = "/onus.demo.Node/Call";
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The length of what stands before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

const UNKNOWN: u16 = 2;
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;
const DATA_LOSS: u16 = 15;
