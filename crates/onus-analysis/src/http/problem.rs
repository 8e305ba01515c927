//! Every refusal, as `application/problem+json` (RFC 9457).

use axum::http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use onus_api::Problem;

use crate::engine::NotStored;

/// A request that is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    problem: Problem,
    retry_after: Option<u32>,
    /// Where it would not be refused.
    location: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, slug: &str, title: &str, detail: impl Into<String>) -> Self {
        let problem = Problem::new(status.as_u16(), slug, title, detail);
        Self { problem, retry_after: None, location: None }
    }

    /// A parameter that cannot be meant.
    pub(crate) fn parameter(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-parameter", "a parameter cannot be meant", detail)
    }

    /// A body that is not what it should be.
    pub(crate) fn body(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-body", "the body cannot be read", detail)
    }

    /// An order that cannot be meant.
    pub(crate) fn order(detail: impl Into<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "bad-order", "the order cannot be meant", detail)
    }

    /// A body that is larger than any that is meant.
    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Self::new(status, "too-large", "the body is too large", detail)
    }

    /// A report that can be read and not be counted.
    pub(crate) fn report(detail: impl Into<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "bad-report", "the report cannot be counted", detail)
    }

    /// Nobody knows who asks.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> Self {
        let status = StatusCode::UNAUTHORIZED;
        Self::new(status, "unauthorized", "it is not known who asks", detail)
    }

    /// Whoever asks may not.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "this is not allowed", detail)
    }

    /// Another analysis has the callers of this service.
    pub(crate) fn elsewhere(address: &str, path: &str) -> Self {
        let title = "another analysis has this service";
        let status = StatusCode::TEMPORARY_REDIRECT;
        let refusal = Self::new(status, "elsewhere", title, format!("it is at {address}"));
        let location = format!("{}{path}", address.trim_end_matches('/'));
        Self { location: Some(location), ..refusal }
    }

    /// Something that works again later.
    pub(crate) fn later(slug: &str, title: &str, detail: impl Into<String>) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, slug, title, detail);
        Self { retry_after: Some(5), ..refusal }
    }
}

impl From<NotStored> for Refusal {
    fn from(why: NotStored) -> Self {
        match why {
            NotStored::Busy => {
                Self::later("busy", "too many wait to be stored", "the queue of the store is full")
            }
            NotStored::Broken(why) => {
                Self::later("store-broken", "the store cannot be written", why)
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A problem is numbers and text: it cannot fail.
        let text = serde_json::to_vec(&self.problem).unwrap_or_default();
        let mut response = (status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(Problem::MEDIA_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(location) = self.location.and_then(|it| HeaderValue::try_from(it).ok()) {
            headers.insert(LOCATION, location);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

pub(crate) async fn not_found(uri: Uri) -> Refusal {
    let detail = format!("there is nothing at {}; docs/analysis.md describes the API", uri.path());
    Refusal::new(StatusCode::NOT_FOUND, "not-found", "there is nothing here", detail)
}

pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> Refusal {
    let detail =
        format!("{} does not take {method}; docs/analysis.md says what it takes", uri.path());
    let status = StatusCode::METHOD_NOT_ALLOWED;
    Refusal::new(status, "method-not-allowed", "the method is not allowed", detail)
}
