//! What is asked, and what must come back.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, TE, USER_AGENT};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use crate::peers::backend::{GRPC, GRPC_MESSAGE};
use crate::peers::connection::Protocol;

/// What is asked, and what must come back.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) protocol: Protocol,
    pub(crate) path: &'static str,
    pub(crate) shape: Shape,
    /// Whether the answer must say whose error it is.
    pub(crate) is_claimed: bool,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A `GET`, whose answer has this status and a body of this length.
    Get { status: u16, length: usize },
    /// A unary call of gRPC that succeeds.
    Grpc,
}

/// An exchange that did not go as it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Miss {
    /// Another status.
    #[error("the status was {0}")]
    Status(u16),
    /// Another length.
    #[error("the body had {0} bytes")]
    Length(usize),
    /// No claim.
    #[error("the answer had no claim")]
    Claim,
    /// No `grpc-status: 0` after the message.
    #[error("the call did not end with status 0")]
    GrpcStatus,
    /// No whole answer.
    #[error("the exchange broke: {0}")]
    Broken(String),
}

impl Miss {
    pub(crate) fn broken(error: &hyper::Error) -> Self {
        let cause = std::error::Error::source(error).map(ToString::to_string);
        Self::Broken(format!("{error}: {}", cause.unwrap_or_default()))
    }
}

impl Call {
    /// The request, with the headers that most have.
    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        let body = match self.shape {
            Shape::Get { .. } => Bytes::new(),
            Shape::Grpc => Bytes::from_static(GRPC_MESSAGE),
        };
        let mut request = Request::new(Full::new(body));
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static("onus-bench"));
        if self.shape == Shape::Grpc {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
            headers.insert(TE, HeaderValue::from_static("trailers"));
            *request.method_mut() = http::Method::POST;
        }
        match self.protocol {
            Protocol::Http1 => {
                headers_of_http1(request.headers_mut());
                *request.uri_mut() = http::Uri::from_static(self.path);
            }
            Protocol::Http2 => {
                let uri = http::Uri::builder().scheme("http").authority(AUTHORITY);
                if let Ok(uri) = uri.path_and_query(self.path).build() {
                    *request.uri_mut() = uri;
                }
                *request.version_mut() = http::Version::HTTP_2;
            }
        }
        request
    }

    /// Reads an answer to its end and says what is wrong with it.
    pub(crate) async fn check(&self, response: http::Response<Incoming>) -> Result<(), Miss> {
        let got = response.status().as_u16();
        let is_claimed = response.headers().contains_key("onus-claim");
        let (mut length, mut trailers) = (0, HeaderMap::new());
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Miss::broken(&error))?;
            match frame.into_data() {
                Ok(data) => length += data.len(),
                Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
            }
        }
        self.verdict(got, length, &trailers)?;
        if self.is_claimed && !is_claimed {
            return Err(Miss::Claim);
        }
        Ok(())
    }

    fn verdict(&self, got: u16, length: usize, trailers: &HeaderMap) -> Result<(), Miss> {
        let (status, expected) = match self.shape {
            Shape::Get { status, length } => (status, length),
            Shape::Grpc => (200, GRPC_MESSAGE.len()),
        };
        if got != status {
            return Err(Miss::Status(got));
        }
        if length != expected {
            return Err(Miss::Length(length));
        }
        let is_ok = trailers.get("grpc-status").is_some_and(|status| status == "0");
        if self.shape == Shape::Grpc && !is_ok {
            return Err(Miss::GrpcStatus);
        }
        Ok(())
    }
}

fn headers_of_http1(headers: &mut HeaderMap) {
    headers.insert(HOST, HeaderValue::from_static(AUTHORITY));
}

/// The name under which the backend is called.
pub(crate) const AUTHORITY: &str = "backend";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_the_expected_one_is_a_miss() {
        fn check(shape: Shape, answer: (u16, usize, Option<&str>), missing: Option<&Miss>) {
            let call = Call { protocol: Protocol::Http1, path: "/", shape, is_claimed: false };
            let mut trailers = HeaderMap::new();
            if let Some(status) = answer.2 {
                trailers.insert("grpc-status", HeaderValue::from_str(status).unwrap());
            }
            let verdict = call.verdict(answer.0, answer.1, &trailers);
            assert_eq!(verdict.as_ref().err(), missing, "{shape:?} {answer:?}");
        }
        let get = Shape::Get { status: 503, length: 12 };
        check(get, (503, 12, None), None);
        check(get, (200, 12, None), Some(&Miss::Status(200)));
        check(get, (503, 11, None), Some(&Miss::Length(11)));
        let message = GRPC_MESSAGE.len();
        check(Shape::Grpc, (200, message, Some("0")), None);
        check(Shape::Grpc, (200, message, Some("14")), Some(&Miss::GrpcStatus));
        check(Shape::Grpc, (200, message, None), Some(&Miss::GrpcStatus));
        check(Shape::Grpc, (200, 0, Some("0")), Some(&Miss::Length(0)));
    }
}
