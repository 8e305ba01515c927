//! A header block between Envoy and the agent: the few lines that ownership reads or writes.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use onus_agent::wire;

use crate::stream::{Block, Stream};

/// The lines of a block that ownership reads or writes, as they were and as they are to be.
///
/// Only those are copied: most of a request is nothing to Onus.
pub(crate) struct Lines {
    block: Block,
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
            before: Vec::with_capacity(8),
            headers: HeaderMap::new(),
            method: Method::GET,
            path: String::new(),
            status: StatusCode::OK,
        };
        stream.each_line(block, &mut |name, value| lines.take(name, value, more));
        lines
    }

    fn take(&mut self, name: &str, value: &[u8], more: &[HeaderName]) {
        match name {
            ":method" => self.method = Method::from_bytes(value).unwrap_or_default(),
            ":path" => self.path = String::from_utf8_lossy(value).into_owned(),
            ":status" => self.status = StatusCode::from_bytes(value).unwrap_or_default(),
            _ => {
                let Some(name) = known(name, more) else { return };
                let Ok(value) = HeaderValue::from_bytes(value) else { return };
                if self.headers.try_append(name.clone(), value.clone()).is_ok() {
                    self.before.push((name, value));
                }
            }
        }
    }

    /// The path without its query.
    pub(crate) fn path_only(&self) -> &str {
        self.path.split_once('?').map_or(&self.path, |(path, _)| path)
    }

    /// Makes Envoy's block say what the agent has made of it.
    pub(crate) fn write(self, stream: &mut impl Stream) {
        let Self { block, before, headers, .. } = self;
        for (at, (name, _)) in before.iter().enumerate() {
            let first = before[..at].iter().all(|(earlier, _)| earlier != name);
            if first && !headers.contains_key(name) {
                stream.remove(block, name.as_str());
            }
        }
        for name in headers.keys() {
            let was = before.iter().filter(|(other, _)| other == name).map(|(_, value)| value);
            if was.eq(headers.get_all(name)) {
                continue;
            }
            // What ownership writes has one line.
            if let Some(value) = headers.get(name) {
                stream.set(block, name.as_str(), value.as_bytes());
            }
        }
    }
}

/// The name, if ownership or the filter's configuration knows it.
fn known(name: &str, more: &[HeaderName]) -> Option<HeaderName> {
    let names = match name.as_bytes().first()? {
        b'c' => CONTENT,
        b'g' => GRPC,
        b'o' if name.starts_with(wire::ONUS_PREFIX) => {
            let own = OWN.iter().find(|own| own.as_str() == name).map(|own| (*own).clone());
            // Those of later versions are known too.
            return own.or_else(|| HeaderName::from_bytes(name.as_bytes()).ok());
        }
        b'r' => RETRY_AFTER,
        b't' => TRACE,
        b'x' => ENVOY,
        _ => &[],
    };
    let known = names.iter().copied().chain(more);
    known.into_iter().find(|known| known.as_str() == name).cloned()
}

static CONTENT: &[&HeaderName] = &[&http::header::CONTENT_TYPE];
static GRPC: &[&HeaderName] =
    &[&wire::GRPC_STATUS, &wire::GRPC_TIMEOUT, &wire::GRPC_PUSHBACK, &wire::GRPC_PREVIOUS_ATTEMPTS];
static OWN: &[&HeaderName] = &[&wire::ONUS_CLAIM, &wire::ONUS_ATTEMPT, &wire::ONUS_MARK];
static RETRY_AFTER: &[&HeaderName] = &[&wire::RETRY_AFTER];
static TRACE: &[&HeaderName] = &[&wire::TRACEPARENT, &wire::TRACESTATE];
static ENVOY: &[&HeaderName] = &[
    &wire::REQUEST_ID,
    &wire::ENVOY_ATTEMPT_COUNT,
    &wire::ENVOY_EXPECTED_TIMEOUT,
    &wire::ENVOY_RATELIMITED,
    &wire::SHOULD_RETRY,
];
