//! What goes with a request from service to service, down the chain.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::key::Key;

/// What goes with a request from service to service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// What the request is about.
    pub(crate) key: Option<Key>,
    /// The state of its trace, as tracing libraries hand it on.
    trace_state: Option<HeaderValue>,
}

impl Carried {
    pub(crate) fn of(key: Key) -> Self {
        Self { key: Some(key), trace_state: None }
    }

    pub(crate) fn read(headers: &HeaderMap) -> Self {
        Self { key: Key::read(headers), trace_state: headers.get(TRACE_STATE).cloned() }
    }

    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if let Some(key) = self.key {
            key.write(headers);
        }
        if let Some(state) = &self.trace_state {
            headers.insert(TRACE_STATE, state.clone());
        }
    }

    /// What is left where the application loses the context of its requests.
    pub(crate) fn without_context(self) -> Self {
        Self { trace_state: None, ..self }
    }
}

const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
