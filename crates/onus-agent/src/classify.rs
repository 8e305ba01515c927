//! What an answer says: ok, a failure of the callee, or nothing before its trailers (protocol §1).
//!
//! Transport errors are classified by the host, which knows its transport.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use onus_core::{CallError, ErrorSet, MethodKind};

use crate::wire::{GRPC_STATUS, line};

/// What an answer says of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// No failure of the callee; errors that the edge does not count as failures are here too.
    Ok,
    /// The callee failed.
    Failed(CallError),
    /// A gRPC answer whose status comes in its trailers.
    Pending,
}

/// Classifies an answer by its head. `kind` is that of the request, `failures` what counts as a
/// failure on the edge.
///
/// A gRPC call answered without any gRPC, as by a proxy, has the status that gRPC's mapping of
/// HTTP statuses gives it.
#[inline]
#[must_use]
pub fn head(
    kind: MethodKind,
    status: StatusCode,
    headers: &HeaderMap,
    failures: &ErrorSet,
) -> Answer {
    let grpc = match kind {
        MethodKind::Grpc => true,
        MethodKind::Safe | MethodKind::Unsafe => false,
    };
    if let Some(code) = grpc_status(headers) {
        return judge_grpc(code, failures);
    }
    if status == StatusCode::OK && is_grpc(headers) {
        return Answer::Pending;
    }
    if grpc || is_grpc(headers) {
        return judge_grpc(grpc_code_of(status), failures);
    }
    judge(CallError::Http(status.as_u16()), failures)
}

/// Classifies a gRPC answer by its trailers, which may be empty; never [`Answer::Pending`].
#[must_use]
pub fn trailers(trailers: &HeaderMap, failures: &ErrorSet) -> Answer {
    judge_grpc(grpc_status(trailers).unwrap_or(UNKNOWN), failures)
}

/// What a request's method says about sending it twice.
#[inline]
#[must_use]
pub fn method_kind(method: &Method, headers: &HeaderMap) -> MethodKind {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE => MethodKind::Safe,
        Method::POST if is_grpc(headers) => MethodKind::Grpc,
        _ => MethodKind::Unsafe,
    }
}

/// Whether a message is gRPC by its content type. gRPC-Web is not: its status is in the body,
/// where nobody looks.
#[inline]
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let Some(value) = line(headers, &CONTENT_TYPE) else { return false };
    let Some((name, rest)) = value.as_bytes().split_at_checked(GRPC.len()) else { return false };
    name.eq_ignore_ascii_case(GRPC) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

/// The gRPC code UNKNOWN.
const UNKNOWN: u8 = 2;

/// The code in a header block; what is no code of gRPC is UNKNOWN.
#[inline]
fn grpc_status(headers: &HeaderMap) -> Option<u8> {
    let value = line(headers, &GRPC_STATUS)?;
    // Nearly every call ends well.
    if value.as_bytes() == b"0" {
        return Some(0);
    }
    let code = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    Some(code.filter(|&code| code <= 16).unwrap_or(UNKNOWN))
}

/// gRPC's mapping for answers without a gRPC status.
fn grpc_code_of(status: StatusCode) -> u8 {
    const PERMISSION_DENIED: u8 = 7;
    const UNIMPLEMENTED: u8 = 12;
    const INTERNAL: u8 = 13;
    const UNAVAILABLE: u8 = 14;
    const UNAUTHENTICATED: u8 = 16;
    match status.as_u16() {
        400 => INTERNAL,
        401 => UNAUTHENTICATED,
        403 => PERMISSION_DENIED,
        404 => UNIMPLEMENTED,
        429 | 502 | 503 | 504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

/// Code 0 is in no set of errors.
fn judge_grpc(code: u8, failures: &ErrorSet) -> Answer {
    judge(CallError::Grpc(code), failures)
}

fn judge(error: CallError, failures: &ErrorSet) -> Answer {
    if failures.contains(error) { Answer::Failed(error) } else { Answer::Ok }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn block(content_type: &'static str, grpc_status: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        if let Some(status) = grpc_status {
            headers.insert(&GRPC_STATUS, HeaderValue::from_static(status));
        }
        headers
    }

    #[test]
    fn http_answers_by_status() {
        // [term-3] [term-4]
        let failures = ErrorSet::failures();
        let headers = block("application/json", None);
        for status in 100..=999 {
            let code = StatusCode::from_u16(status).unwrap();
            let failed = status == 429 || (500..=599).contains(&status);
            let expected =
                if failed { Answer::Failed(CallError::Http(status)) } else { Answer::Ok };
            for kind in [MethodKind::Safe, MethodKind::Unsafe] {
                assert_eq!(head(kind, code, &headers, &failures), expected, "{status}");
            }
        }
    }

    #[test]
    fn an_edge_has_its_own_failures() {
        // [term-6]
        let mut failures = ErrorSet::failures();
        failures.insert(CallError::Http(404));
        failures.remove(CallError::Http(501));
        failures.remove(CallError::Grpc(8));
        let check = |status: u16, grpc_status, expected| {
            let status = StatusCode::from_u16(status).unwrap();
            let headers = block("", grpc_status);
            assert_eq!(head(MethodKind::Safe, status, &headers, &failures), expected, "{status}");
        };
        check(404, None, Answer::Failed(CallError::Http(404)));
        check(501, None, Answer::Ok);
        check(500, None, Answer::Failed(CallError::Http(500)));
        check(200, Some("8"), Answer::Ok);
        check(200, Some("14"), Answer::Failed(CallError::Grpc(14)));
    }

    #[test]
    fn grpc_answers_by_head() {
        // [term-5] [term-7]
        let failures = ErrorSet::failures();
        let check = |status: u16, content_type, grpc_status, expected| {
            let code = StatusCode::from_u16(status).unwrap();
            let headers = block(content_type, grpc_status);
            let answer = head(MethodKind::Grpc, code, &headers, &failures);
            assert_eq!(answer, expected, "{status} {content_type} {grpc_status:?}");
        };
        let failed = |code| Answer::Failed(CallError::Grpc(code));
        const GRPC: &str = "application/grpc";
        check(200, GRPC, None, Answer::Pending);
        check(200, "application/grpc+proto", None, Answer::Pending);
        check(200, GRPC, Some("0"), Answer::Ok);
        check(200, GRPC, Some("14"), failed(14));
        check(200, GRPC, Some("5"), Answer::Ok);
        check(503, GRPC, Some("5"), Answer::Ok);
        check(200, "", Some("13"), failed(13));
        check(200, "", None, failed(2));
        check(200, "text/html", None, failed(2));
        check(503, GRPC, None, failed(14));
        check(503, "text/plain", None, failed(14));
        check(502, "", None, failed(14));
        check(504, "", None, failed(14));
        check(429, "", None, failed(14));
        check(400, "", None, failed(13));
        check(500, "", None, failed(2));
        check(302, "", None, failed(2));
        for status in [401, 403, 404] {
            check(status, "", None, Answer::Ok);
        }
        // An answer that says it is gRPC is one, whatever was asked.
        let headers = block(GRPC, None);
        let answer = head(MethodKind::Safe, StatusCode::BAD_REQUEST, &headers, &failures);
        assert_eq!(answer, failed(13));
    }

    #[test]
    fn grpc_answers_by_trailers() {
        // [term-3] [term-5]
        let check = |text: Option<&'static str>, expected| {
            let answer = trailers(&block("", text), &ErrorSet::failures());
            assert_eq!(answer, expected, "{text:?}");
        };
        let failed = |code| Answer::Failed(CallError::Grpc(code));
        for text in ["0", "1", "3", "5", "6", "7", "9", "11", "12", "16"] {
            check(Some(text), Answer::Ok);
        }
        for (text, code) in
            [("2", 2), ("4", 4), ("8", 8), ("10", 10), ("13", 13), ("14", 14), ("15", 15)]
        {
            check(Some(text), failed(code));
        }
        for text in ["", "17", "-1", "256", "OK", "1.0"] {
            check(Some(text), failed(UNKNOWN));
        }
        check(None, failed(UNKNOWN));
    }

    #[test]
    fn a_request_is_grpc_by_its_content_type() {
        let check = |method: Method, content_type, expected| {
            let kind = method_kind(&method, &block(content_type, None));
            assert_eq!(kind, expected, "{method} {content_type}");
        };
        for safe in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
            check(safe, "", MethodKind::Safe);
        }
        for other in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::CONNECT] {
            check(other, "application/json", MethodKind::Unsafe);
        }
        check(Method::from_bytes(b"PURGE").unwrap(), "", MethodKind::Unsafe);
        check(Method::PUT, "application/grpc", MethodKind::Unsafe);
        for grpc in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;charset=utf-8",
            "Application/GRPC",
        ] {
            check(Method::POST, grpc, MethodKind::Grpc);
        }
        for other in ["", "application/grp", "application/grpc-web+proto", "application/grpcs"] {
            check(Method::POST, other, MethodKind::Unsafe);
        }
    }
}
