//! Vetoes: what makes callers without Onus stop retrying (protocol §5).

use http::{HeaderMap, HeaderValue};

use super::names::{ENVOY_RATELIMITED, GRPC_PUSHBACK, SHOULD_RETRY};
use super::put;

/// Puts the vetoes on an Unclaimed answer, in the block that has its claim (protocol §5). `grpc`
/// adds the pushback that gRPC libraries obey; one that the application set itself is left alone.
pub fn write_vetoes(headers: &mut HeaderMap, grpc: bool) {
    put(headers, &ENVOY_RATELIMITED, HeaderValue::from_static("true"));
    if grpc && !headers.contains_key(&GRPC_PUSHBACK) {
        put(headers, &GRPC_PUSHBACK, HeaderValue::from_static(REFUSED));
    }
}

/// Tells client libraries at a public edge not to retry an Unclaimed answer (protocol §5, trust
/// boundary).
pub fn write_should_not_retry(headers: &mut HeaderMap) {
    put(headers, &SHOULD_RETRY, HeaderValue::from_static("false"));
}

/// Removes the vetoes as [`write_vetoes`] writes them.
pub(crate) fn remove_own(headers: &mut HeaderMap) {
    headers.remove(&ENVOY_RATELIMITED);
    let own = headers.get(&GRPC_PUSHBACK).is_some_and(|value| value == REFUSED);
    if own {
        headers.remove(&GRPC_PUSHBACK);
    }
}

/// Removes the vetoes, whoever wrote them.
pub(super) fn remove_all(headers: &mut HeaderMap) {
    headers.remove(&ENVOY_RATELIMITED);
    headers.remove(&GRPC_PUSHBACK);
}

const REFUSED: &str = "-1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vetoes_by_protocol() {
        // [wire-11] [wire-14]
        fn check(grpc: bool, own: Option<&'static str>, pushback: Option<&str>) {
            let mut headers = HeaderMap::new();
            if let Some(own) = own {
                headers.insert(&GRPC_PUSHBACK, HeaderValue::from_static(own));
            }
            headers.append(&ENVOY_RATELIMITED, HeaderValue::from_static("copied"));
            write_vetoes(&mut headers, grpc);
            let envoy: Vec<_> = headers.get_all(&ENVOY_RATELIMITED).iter().collect();
            assert_eq!(envoy, ["true"]);
            let written: Vec<_> = headers.get_all(&GRPC_PUSHBACK).iter().collect();
            assert_eq!(written, pushback.into_iter().collect::<Vec<_>>());
        }
        check(false, None, None);
        check(true, None, Some("-1"));
        check(true, Some("250"), Some("250"));
        check(true, Some("-1"), Some("-1"));
        check(false, Some("250"), Some("250"));
    }

    #[test]
    fn public_veto() {
        // [wire-16]
        let mut headers = HeaderMap::new();
        write_should_not_retry(&mut headers);
        assert_eq!(headers["x-should-retry"], "false");
    }
}
