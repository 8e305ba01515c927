//! A header block between Envoy and the agent: the few lines that ownership reads or writes.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use onus_agent::wire;

use crate::stream::{Block, Stream};

/// The lines of a block that ownership reads or writes, as they were and as they are to be.
///
/// Only those are copied: most of a request is nothing to Onus.
pub(crate) struct Lines {
    block: Block,
    /// The lines that the agent may change, as they were.
    before: Vec<(HeaderName, HeaderValue)>,
    /// What the agent reads and changes.
    pub(crate) headers: HeaderMap,
    /// What stands in `:method`, of a request.
    pub(crate) method: Method,
    /// What stands in `:path`, of a request.
    pub(crate) path: String,
    /// What stands in `:status`, of a response's head.
    pub(crate) status: StatusCode,
}

impl Lines {
    /// Reads the lines of `block` that ownership knows, and those named in `more`.
    pub(crate) fn read(stream: &impl Stream, block: Block, more: &[HeaderName]) -> Self {
        let mut lines = Self {
            block,
            before: Vec::new(),
            headers: HeaderMap::new(),
            method: Method::GET,
            path: String::new(),
            status: StatusCode::OK,
        };
        stream.each_line(block, &mut |name, value| match name {
            b":method" => lines.method = Method::from_bytes(value).unwrap_or_default(),
            b":path" => lines.path = String::from_utf8_lossy(value).into_owned(),
            b":status" => lines.status = StatusCode::from_bytes(value).unwrap_or_default(),
            _ => {
                if let Some(name) = known(name, more).filter(|name| matters(name, value)) {
                    lines.keep(&name, value);
                }
            }
        });
        lines
    }

    fn keep(&mut self, name: &HeaderName, value: &[u8]) {
        let Ok(value) = HeaderValue::from_bytes(value) else { return };
        if is_only_read(name) {
            let _ = self.headers.try_append(name, value);
        } else if self.headers.try_append(name, value.clone()).is_ok() {
            self.before.push((name.clone(), value));
        }
    }

    /// The path without its query.
    pub(crate) fn path_only(&self) -> &str {
        self.path.split_once('?').map_or(&self.path, |(path, _)| path)
    }

    /// Makes Envoy's block say what the agent has made of it.
    pub(crate) fn write(self, stream: &mut impl Stream) {
        let Self { block, before, headers, .. } = self;
        let before = before.as_slice();
        // Blocks have a few lines: to compare them all costs less than to hash a name.
        let was = |name: &HeaderName| {
            let name = name.clone();
            before.iter().filter(move |(other, _)| *other == name).map(|(_, value)| value)
        };
        for (at, (name, _)) in before.iter().enumerate() {
            let first = before[..at].iter().all(|(earlier, _)| earlier != name);
            if first && !headers.keys().any(|kept| kept == name) {
                stream.remove(block, name.as_str());
            }
        }
        for (name, value) in headers.iter().filter(|(name, _)| !is_only_read(name)) {
            let is = headers.iter().filter(|(other, _)| *other == name).map(|(_, value)| value);
            // What ownership writes has one line.
            if was(name).next().is_none() {
                stream.add(block, name.as_str(), value.as_bytes());
            } else if !was(name).eq(is) {
                stream.set(block, name.as_str(), value.as_bytes());
            }
        }
    }
}

/// Whether the agent only reads a header, whatever it makes of the block.
fn is_only_read(name: &HeaderName) -> bool {
    [&wire::TRACEPARENT, &wire::REQUEST_ID, &CONTENT_TYPE].contains(&name)
}

/// Whether a line of this name says anything: a content type does where it is gRPC.
fn matters(name: &HeaderName, value: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    *name != CONTENT_TYPE
        || value.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
}

/// Whether ownership knows a header of this name.
pub(crate) fn is_known(name: &HeaderName) -> bool {
    known(name.as_str().as_bytes(), &[]).is_some()
}

/// The name, if ownership or the filter's configuration knows it.
fn known<'a>(name: &[u8], more: &'a [HeaderName]) -> Option<Cow<'a, HeaderName>> {
    let known: &'static HeaderName = match name {
        b"content-type" => &CONTENT_TYPE,
        b"grpc-previous-rpc-attempts" => &wire::GRPC_PREVIOUS_ATTEMPTS,
        b"grpc-retry-pushback-ms" => &wire::GRPC_PUSHBACK,
        b"grpc-status" => &wire::GRPC_STATUS,
        b"grpc-timeout" => &wire::GRPC_TIMEOUT,
        b"onus-attempt" => &wire::ONUS_ATTEMPT,
        b"onus-claim" => &wire::ONUS_CLAIM,
        b"onus-mark" => &wire::ONUS_MARK,
        b"retry-after" => &wire::RETRY_AFTER,
        b"traceparent" => &wire::TRACEPARENT,
        b"tracestate" => &wire::TRACESTATE,
        b"x-envoy-attempt-count" => &wire::ENVOY_ATTEMPT_COUNT,
        b"x-envoy-expected-rq-timeout-ms" => &wire::ENVOY_EXPECTED_TIMEOUT,
        b"x-envoy-ratelimited" => &wire::ENVOY_RATELIMITED,
        b"x-request-id" => &wire::REQUEST_ID,
        b"x-should-retry" => &wire::SHOULD_RETRY,
        // Those of later versions are known too.
        _ if name.starts_with(wire::ONUS_PREFIX.as_bytes()) => {
            return HeaderName::from_bytes(name).ok().map(Cow::Owned);
        }
        _ => {
            let mut more = more.iter();
            return more.find(|more| more.as_str().as_bytes() == name).map(Cow::Borrowed);
        }
    };
    Some(Cow::Borrowed(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_under_what_they_are_called() {
        for name in [
            &CONTENT_TYPE,
            &wire::ENVOY_ATTEMPT_COUNT,
            &wire::ENVOY_EXPECTED_TIMEOUT,
            &wire::ENVOY_RATELIMITED,
            &wire::GRPC_PREVIOUS_ATTEMPTS,
            &wire::GRPC_PUSHBACK,
            &wire::GRPC_STATUS,
            &wire::GRPC_TIMEOUT,
            &wire::ONUS_ATTEMPT,
            &wire::ONUS_CLAIM,
            &wire::ONUS_MARK,
            &wire::REQUEST_ID,
            &wire::RETRY_AFTER,
            &wire::SHOULD_RETRY,
            &wire::TRACEPARENT,
            &wire::TRACESTATE,
        ] {
            assert_eq!(known(name.as_str().as_bytes(), &[]).as_deref(), Some(name));
        }
        let more = [HeaderName::from_static("x-trace")];
        for (name, is_known) in [("x-trace", true), ("onus-later", true), ("x-trac", false)] {
            let found = known(name.as_bytes(), &more);
            assert_eq!(found.as_deref().map(HeaderName::as_str), is_known.then_some(name));
        }
    }
}
