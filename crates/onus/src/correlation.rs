//! Which request a call belongs to where the application is another process (protocol §5): the
//! inbound layer gives the request a token in `tracestate`, the outbound layer reads it there.

use std::iter;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use onus_agent::{Agent, Inbound, Mode, trace_context, wire};

use crate::clock::Clock;

/// How requests and calls are tied together across an application that runs beside the layers, as
/// behind a proxy, instead of between them.
///
/// Calls carry the token of their request where the application hands `tracestate` on, as the
/// libraries of OpenTelemetry do. Where it does not, the trace id and the values of a few other
/// headers tell as well, while only one live request has them; a call that nothing ties to a
/// request is counted and sent as it is.
#[derive(Clone, Debug)]
pub struct Correlation {
    ids: Arc<[HeaderName]>,
}

impl Correlation {
    /// By the token, else by the trace id, else by the values of these headers, in their order; at
    /// most three are looked at, beside the trace id.
    pub fn new(ids: impl IntoIterator<Item = HeaderName>) -> Self {
        Self { ids: ids.into_iter().take(IDS_MAX).collect() }
    }

    /// Files the request, and puts its token in front of `tracestate`. One that finds no room is
    /// sent without: its calls are lost to it, and it is counted.
    pub(crate) fn file(&self, inbound: &Inbound, headers: &mut HeaderMap, clock: Clock) {
        if inbound.arm().is_off() {
            return;
        }
        let trace_id = trace_context::trace_id(headers);
        let token = {
            let ids = trace_id.iter().map(<[u8; 16]>::as_slice).chain(self.values(headers));
            inbound.file(ids, clock.now())
        };
        if let Some(token) = token {
            trace_context::insert_token(headers, token);
        }
    }

    /// Finds the request that a call belongs to, and takes the token out before the call leaves.
    pub(crate) fn find(&self, agent: &Agent, headers: &mut HeaderMap) -> Option<Inbound> {
        if agent.mode() == Mode::Off {
            return None;
        }
        if let Some(token) = trace_context::read_token(headers) {
            trace_context::remove_token(headers);
            // A token that finds nothing is one of a request that is over: no id knows better.
            return agent.inbound_of(token);
        }
        let trace_id = trace_context::trace_id(headers);
        let ids = trace_id.iter().map(<[u8; 16]>::as_slice).chain(self.values(headers));
        agent.inbound_by_ids(ids)
    }

    /// The values of the id headers; one that is there twice says nothing.
    fn values<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a [u8]> {
        self.ids.iter().filter_map(|name| {
            let value = wire::line(headers, name)?.as_bytes();
            let is_only = headers.get_all(name).iter().nth(1).is_none();
            (!value.is_empty() && is_only).then_some(value)
        })
    }
}

impl Default for Correlation {
    /// By the token, else by the trace id, else by `x-request-id`.
    fn default() -> Self {
        Self::new(iter::once(HeaderName::from_static("x-request-id")))
    }
}

/// A request has four ids at most, and the trace id is one.
const IDS_MAX: usize = 3;
