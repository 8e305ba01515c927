//! Every header name that Onus reads or writes.

use http::HeaderName;

/// The claim of an error answer.
pub static ONUS_CLAIM: HeaderName = HeaderName::from_static("onus-claim");
/// The mark of a retry after a lost answer, and of all that descends from it.
pub static ONUS_MARK: HeaderName = HeaderName::from_static("onus-mark");
/// Which attempt of a call a request is.
pub static ONUS_ATTEMPT: HeaderName = HeaderName::from_static("onus-attempt");
/// What every name of Onus's own begins with, those of later versions too.
pub const ONUS_PREFIX: &str = "onus-";

/// Which attempt a request is, as Envoy counts.
pub static ENVOY_ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");
/// How many attempts a gRPC library made before this one.
pub static GRPC_PREVIOUS_ATTEMPTS: HeaderName =
    HeaderName::from_static("grpc-previous-rpc-attempts");

/// How long a gRPC caller is to wait before it retries; negative: it must not.
pub static GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
/// What makes Envoy stop retrying, whatever its `retry_on` says.
pub static ENVOY_RATELIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");
/// What some client libraries read at a public edge.
pub static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// How long a caller is to wait before it asks again (RFC 9110).
pub static RETRY_AFTER: HeaderName = http::header::RETRY_AFTER;

/// The time a caller allows, as Envoy writes it.
pub static ENVOY_EXPECTED_TIMEOUT: HeaderName =
    HeaderName::from_static("x-envoy-expected-rq-timeout-ms");
/// The time a gRPC caller allows.
pub static GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// The status of a gRPC call.
pub static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The ids of a trace (W3C Trace Context).
pub static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What vendors add to a trace; Onus's token travels in it.
pub static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// The id of a request as proxies write it.
pub static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Which error a proxy made itself (RFC 9209).
pub static PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// Whether claims may be written under `name` too: a name of a mesh's own, so that no header with
/// a meaning is taken away from those who use it.
#[must_use]
pub fn may_be_alias(name: &HeaderName) -> bool {
    let others = [&REQUEST_ID, &SHOULD_RETRY].contains(&name)
        || ["x-envoy-", "x-forwarded-"].iter().any(|prefix| name.as_str().starts_with(prefix));
    name.as_str().starts_with("x-") && !others
}
