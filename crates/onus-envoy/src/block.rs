//! A header block between Envoy and the agent: the few lines that ownership reads or writes.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use onus_agent::correlator::Token;
use onus_agent::trace_context::{self, MEMBER_LEN};
use onus_agent::wire;

use crate::hub::Service;
use crate::stream::{Block, Stream};
use crate::texts::Texts;

/// The lines of a block that ownership reads or writes, as they were and as they are to be.
///
/// Only those are copied: most of a request is nothing to Onus. Of a request without any of them, as
/// most are, no header map is made either.
pub(crate) struct Lines {
    block: Block,
    /// The lines that the agent may change, as they were.
    before: Vec<(HeaderName, HeaderValue)>,
    /// What the agent reads and changes.
    pub(crate) headers: HeaderMap,
    /// What stands in `:method`, of a request.
    pub(crate) method: Method,
    /// What stands in `:status`, of a response's head.
    pub(crate) status: StatusCode,
    /// The path and the ids, of a request.
    texts: Texts,
    /// What is to be all of `tracestate`.
    member: Option<[u8; MEMBER_LEN]>,
}

impl Lines {
    /// Reads the lines of `block` that ownership knows under the configuration of `service`.
    pub(crate) fn read(stream: &impl Stream, block: Block, service: &Service) -> Self {
        let mut lines = Self {
            block,
            before: Vec::new(),
            headers: HeaderMap::new(),
            method: Method::GET,
            status: StatusCode::OK,
            texts: Texts::default(),
            member: None,
        };
        let known = Known::of(service, block, stream.shared().is_some());
        stream.each_line(block, &mut |name, value| match name {
            [b':', pseudo @ ..] => lines.keep_pseudo(pseudo, value),
            _ => lines.keep(&known, name, value),
        });
        lines
    }

    #[inline]
    fn keep_pseudo(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"method" => self.method = Method::from_bytes(value).unwrap_or_default(),
            b"path" => self.texts.push(PATH, value),
            b"status" => self.status = StatusCode::from_bytes(value).unwrap_or_default(),
            _ => {}
        }
    }

    #[inline]
    fn keep(&mut self, known: &Known<'_>, name: &[u8], value: &[u8]) {
        if let Some(place) = known.ids.iter().position(|id| id.as_str().as_bytes() == name) {
            self.texts.push(id_number(place), value);
        }
        if known.concerns(name, value) {
            self.keep_header(name, value);
        }
    }

    /// Few requests come here, so what all others do is kept small.
    #[inline(never)]
    fn keep_header(&mut self, name: &[u8], value: &[u8]) {
        let (Some(name), Ok(value)) = (name_of(name), HeaderValue::from_bytes(value)) else {
            return;
        };
        if is_only_read(&name) {
            let _ = self.headers.try_append(name, value);
        } else if self.headers.try_append(&name, value.clone()).is_ok() {
            self.before.push((name, value));
        }
    }

    /// The path with its query.
    pub(crate) fn path(&self) -> &[u8] {
        self.texts.of(PATH).next().unwrap_or_default()
    }

    /// The ids of the request, in the order in which the service names them: of `traceparent` only
    /// the trace's, as each hop has its own parent.
    pub(crate) fn ids<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a [u8]> {
        service.ids().iter().enumerate().filter_map(|(place, name)| {
            let mut lines = self.texts.of(id_number(place));
            if *name == wire::TRACEPARENT {
                trace_context::trace_id_text(lines)
            } else {
                lines.next()
            }
        })
    }

    /// Gives the request its token, for the application to hand on.
    pub(crate) fn insert_token(&mut self, token: Token) {
        if wire::line(&self.headers, &wire::TRACESTATE).is_some() {
            trace_context::insert_token(&mut self.headers, token);
        } else {
            self.member = Some(trace_context::member(token));
        }
    }

    /// Makes Envoy's block say what the agent has made of it.
    pub(crate) fn write(self, stream: &mut impl Stream) {
        let Self { block, before, headers, member, .. } = self;
        if let Some(member) = member {
            stream.add(block, wire::TRACESTATE.as_str(), &member);
        }
        if !(before.is_empty() && headers.is_empty()) {
            write_changes(stream, block, &before, &headers);
        }
    }
}

/// Makes Envoy's block, whose lines were as `before`, have those of `headers`.
fn write_changes(
    stream: &mut impl Stream,
    block: Block,
    before: &[(HeaderName, HeaderValue)],
    headers: &HeaderMap,
) {
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

/// The number of the path among the texts.
const PATH: u32 = 0;

/// The number of an id by its place among those of the service.
const fn id_number(place: usize) -> u32 {
    PATH + 1 + place as u32
}

/// Whether the agent only reads a header, whatever it makes of the block.
fn is_only_read(name: &HeaderName) -> bool {
    [&wire::TRACEPARENT, &CONTENT_TYPE].contains(&name)
}

/// What ownership knows of a block.
struct Known<'a> {
    /// The second name of claims.
    alias: Option<&'a HeaderName>,
    /// The headers that identify a request.
    ids: &'a [HeaderName],
    /// Whether the agent reads the trace.
    trace: bool,
}

impl<'a> Known<'a> {
    #[inline]
    fn of(service: &'a Service, block: Block, by_token_only: bool) -> Self {
        let alias = service.agent().claim_alias();
        match block {
            Block::Request => {
                let ids = if by_token_only { &[] } else { service.ids() };
                Self { alias, ids, trace: service.agent().reads_traces() }
            }
            Block::Response | Block::Trailers => Self { alias, ids: &[], trace: false },
        }
    }

    /// Whether the agent is to see a line.
    #[inline]
    fn concerns(&self, name: &[u8], value: &[u8]) -> bool {
        match spelt(name) {
            Some(name) if *name == wire::TRACEPARENT => self.trace,
            // A content type says something where it is gRPC.
            Some(name) if *name == CONTENT_TYPE => {
                const GRPC: &[u8] = b"application/grpc";
                value.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
            }
            Some(_) => true,
            // Those of later versions are known too.
            None => {
                name.starts_with(wire::ONUS_PREFIX.as_bytes())
                    || self.alias.is_some_and(|alias| alias.as_str().as_bytes() == name)
            }
        }
    }
}

/// The name as the agent knows it.
fn name_of(name: &[u8]) -> Option<HeaderName> {
    spelt(name).cloned().or_else(|| HeaderName::from_bytes(name).ok())
}

/// The name, if it is one that ownership spells. Nearly all are none: their first letter comes first.
#[inline]
fn spelt(name: &[u8]) -> Option<&'static HeaderName> {
    Some(match (name.first()?, name) {
        (b'c', b"content-type") => &CONTENT_TYPE,
        (b'g', b"grpc-previous-rpc-attempts") => &wire::GRPC_PREVIOUS_ATTEMPTS,
        (b'g', b"grpc-retry-pushback-ms") => &wire::GRPC_PUSHBACK,
        (b'g', b"grpc-status") => &wire::GRPC_STATUS,
        (b'g', b"grpc-timeout") => &wire::GRPC_TIMEOUT,
        (b'o', b"onus-attempt") => &wire::ONUS_ATTEMPT,
        (b'o', b"onus-claim") => &wire::ONUS_CLAIM,
        (b'o', b"onus-mark") => &wire::ONUS_MARK,
        (b'r', b"retry-after") => &wire::RETRY_AFTER,
        (b't', b"traceparent") => &wire::TRACEPARENT,
        (b't', b"tracestate") => &wire::TRACESTATE,
        (b'x', b"x-envoy-attempt-count") => &wire::ENVOY_ATTEMPT_COUNT,
        (b'x', b"x-envoy-expected-rq-timeout-ms") => &wire::ENVOY_EXPECTED_TIMEOUT,
        (b'x', b"x-envoy-ratelimited") => &wire::ENVOY_RATELIMITED,
        (b'x', b"x-should-retry") => &wire::SHOULD_RETRY,
        _ => return None,
    })
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
            &wire::RETRY_AFTER,
            &wire::SHOULD_RETRY,
            &wire::TRACEPARENT,
            &wire::TRACESTATE,
        ] {
            assert_eq!(spelt(name.as_str().as_bytes()), Some(name));
        }
    }

    #[test]
    fn the_agent_sees_what_concerns_it() {
        fn check(name: &str, value: &str, alone: bool, with_alias_and_share: bool) {
            let alias = HeaderName::from_static("x-claim");
            let plain = Known { alias: None, ids: &[], trace: false };
            let other = Known { alias: Some(&alias), ids: &[], trace: true };
            let line = (name.as_bytes(), value.as_bytes());
            assert_eq!(plain.concerns(line.0, line.1), alone, "{name}");
            assert_eq!(other.concerns(line.0, line.1), with_alias_and_share, "{name}");
            assert_eq!(name_of(line.0).unwrap().as_str(), name);
        }
        check("onus-mark", "1", true, true);
        check("onus-later", "1", true, true);
        check("onusness", "1", false, false);
        check("x-claim", "claimed", false, true);
        check("x-claims", "claimed", false, false);
        check("traceparent", "00-", false, true);
        check("content-type", "Application/gRPC+proto", true, true);
        check("content-type", "application/json", false, false);
    }
}
