//! The answer that a layer makes itself where there is no time for another.

use http::{HeaderValue, Response, StatusCode, header};
use onus_agent::{MethodKind, wire};

/// 504, or for gRPC status 4 (DEADLINE_EXCEEDED) in the one header block.
pub(crate) fn out_of_time<B>(kind: MethodKind, body: B) -> Response<B> {
    let mut response = Response::new(body);
    match kind {
        MethodKind::Grpc => {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            headers.insert(&wire::GRPC_STATUS, HeaderValue::from_static("4"));
        }
        MethodKind::Safe | MethodKind::Unsafe => {
            *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
        }
    }
    response
}
