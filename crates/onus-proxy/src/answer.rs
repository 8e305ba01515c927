//! Answers that the proxy makes itself.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::pool::PoolError;

/// An error that the proxy answers itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnError {
    status: StatusCode,
    grpc_status: u8,
    /// The type of RFC 9209.
    error: &'static str,
    detail: String,
}

impl OwnError {
    /// The request cannot be meant.
    pub(crate) fn malformed(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INTERNAL, "http_request_error", detail.to_owned())
    }

    /// The head of the request has too many fields.
    pub(crate) fn large() -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let detail = "the request has too many header fields".to_owned();
        Self::new(status, INTERNAL, "http_request_error", detail)
    }

    /// The answer of a callee cannot be meant.
    pub(crate) fn meaningless(detail: &str) -> Self {
        let detail = detail.to_owned();
        Self::new(StatusCode::BAD_GATEWAY, UNAVAILABLE, "http_protocol_error", detail)
    }

    /// The application has as many requests as it is given.
    pub(crate) fn too_many() -> Self {
        let detail = "too many requests are under way".to_owned();
        Self::new(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, "connection_limit_reached", detail)
    }

    /// The request has been here before.
    pub(crate) fn looped() -> Self {
        let detail = "the request comes back to where it has been".to_owned();
        Self::new(StatusCode::LOOP_DETECTED, INTERNAL, "proxy_loop_detected", detail)
    }

    /// Nobody is known by this name.
    pub(crate) fn unknown_callee(name: &str) -> Self {
        // A stranger's name may be as long as a head.
        let short: String = name.chars().take(NAME_MAX).collect();
        let rest = if short.len() < name.len() { "…" } else { "" };
        let detail = format!("no callee {short:?}{rest} is configured");
        Self::new(StatusCode::NOT_FOUND, UNIMPLEMENTED, "destination_not_found", detail)
    }

    fn new(status: StatusCode, grpc_status: u8, error: &'static str, detail: String) -> Self {
        Self { status, grpc_status, error, detail }
    }

    /// The answer, as a client of this kind reads it.
    pub(crate) fn answer<R>(&self, grpc: bool) -> Response<AnswerBody<R>> {
        let mut response = Response::new(AnswerBody::Own { text: None });
        let headers = response.headers_mut();
        if let Some(value) = self.proxy_status() {
            headers.insert(PROXY_STATUS, value);
        }
        if grpc {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            headers.insert(GRPC_STATUS, u16::from(self.grpc_status).into());
            if let Ok(message) = HeaderValue::try_from(percent_encoded(&self.detail)) {
                headers.insert(GRPC_MESSAGE, message);
            }
        } else {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            *response.status_mut() = self.status;
            let text = Bytes::from(format!("onus: {}\n", self.detail));
            *response.body_mut() = AnswerBody::Own { text: Some(text) };
        }
        response
    }

    fn proxy_status(&self) -> Option<HeaderValue> {
        let mut text = format!("onus; error={}; details=\"", self.error);
        for char in self.detail.chars() {
            match char {
                '"' | '\\' => text.extend(['\\', char]),
                ' '..='~' => text.push(char),
                _ => text.push('?'),
            }
        }
        text.push('"');
        HeaderValue::try_from(text).ok()
    }
}

impl From<&PoolError> for OwnError {
    fn from(error: &PoolError) -> Self {
        if error.is_of_request() {
            return Self::malformed(&error.detail());
        }
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        let (status, kind) = match error {
            PoolError::Resolve { source, .. } if source.kind() == ErrorKind::TimedOut => {
                (unavailable, "dns_timeout")
            }
            PoolError::Resolve { .. } => (unavailable, "dns_error"),
            PoolError::Connect { source, .. } => (unavailable, unconnected(source)),
            PoolError::ConnectTimeout { .. } => (unavailable, "connection_timeout"),
            PoolError::Loop { .. } => (StatusCode::LOOP_DETECTED, "proxy_loop_detected"),
            PoolError::Full { .. } => (unavailable, "connection_limit_reached"),
            PoolError::Exchange { source, .. } if source.is_parse() => {
                (StatusCode::BAD_GATEWAY, "http_protocol_error")
            }
            PoolError::Exchange { .. } => (StatusCode::BAD_GATEWAY, "connection_terminated"),
        };
        Self::new(status, UNAVAILABLE, error.tls().unwrap_or(kind), error.detail())
    }
}

/// Why no connection could be made, where TLS is not to blame.
fn unconnected(error: &io::Error) -> &'static str {
    let words = [
        (ErrorKind::ConnectionRefused, "connection_refused"),
        (ErrorKind::ConnectionReset, "connection_terminated"),
        (ErrorKind::UnexpectedEof, "connection_terminated"),
        (ErrorKind::HostUnreachable, "destination_ip_unroutable"),
        (ErrorKind::NetworkUnreachable, "destination_ip_unroutable"),
    ];
    let word = words.iter().find(|(kind, _)| *kind == error.kind());
    word.map_or("destination_unavailable", |(_, word)| word)
}

/// Whether a request is one of gRPC.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

pin_project! {
    /// The body of an answer: the proxy's own, or the callee's.
    #[project = AnswerBodyProj]
    #[derive(Debug)]
    pub(crate) enum AnswerBody<R> {
        /// The proxy's own.
        Own { text: Option<Bytes> },
        /// The callee's.
        Callee { #[pin] body: R },
    }
}

impl<R: Body<Data = Bytes>> Body for AnswerBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match self.project() {
            AnswerBodyProj::Own { text } => {
                Poll::Ready(text.take().map(|text| Ok(Frame::data(text))))
            }
            AnswerBodyProj::Callee { body } => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own { text } => text.is_none(),
            Self::Callee { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own { text } => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Callee { body } => body.size_hint(),
        }
    }
}

/// gRPC's own encoding of messages.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(byte as char),
            _ => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// As much of a name as is told: no name of DNS is longer.
const NAME_MAX: usize = 255;

const UNIMPLEMENTED: u8 = 12;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;
