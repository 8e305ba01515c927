//! Requests that say how many proxies they may pass (RFC 9110, section 7.6.2).

use http::header::{ALLOW, HeaderValue, MAX_FORWARDS};
use http::{Method, Request, Response, StatusCode};

use crate::answer::AnswerBody;

/// Takes this proxy off the number in an OPTIONS or TRACE request. Where none is left, the proxy is
/// whom the request is for, and this is its answer.
pub(crate) fn spend<B, R>(request: &mut Request<B>) -> Option<Response<AnswerBody<R>>> {
    let is_trace = *request.method() == Method::TRACE;
    if !is_trace && *request.method() != Method::OPTIONS {
        return None;
    }
    let left: u64 = request.headers().get(MAX_FORWARDS)?.to_str().ok()?.parse().ok()?;
    if let Some(left) = left.checked_sub(1) {
        request.headers_mut().insert(MAX_FORWARDS, left.into());
        return None;
    }
    let mut answer = Response::new(AnswerBody::Own { text: None });
    if is_trace {
        // Nobody is told what a proxy was sent: there may be secrets in it.
        *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("OPTIONS"));
    }
    Some(answer)
}
