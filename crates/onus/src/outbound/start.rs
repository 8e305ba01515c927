//! What a call is before its first attempt: its edge, its request, and whether it repeats one that
//! the application made before.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;
use http::{HeaderMap, Request};
use http_body::Body;
use onus_agent::{CallStart, Edge, Inbound, MethodKind, Outbound, Timestamp};

use super::hop::Hop;
use crate::onus::Onus;
use crate::procedure::{self, RequestHead};

/// A call that is about to start.
pub(super) struct Start {
    inbound: Option<Inbound>,
    edge: Arc<Edge>,
    call: CallStart,
}

impl Start {
    /// Finds the edge of a call that belongs to `inbound`.
    pub(super) fn of<C, B: Body>(
        hop: &Hop<C>,
        inbound: Option<Inbound>,
        request: &Request<B>,
        method: MethodKind,
        now: impl FnOnce() -> Timestamp,
    ) -> Self {
        let onus = &hop.onus;
        let head = RequestHead::of(request);
        let callee = hop.callee.of(onus, &head);
        let procedure = procedure::of(onus.agent(), &head, method, hop.procedure.as_ref());
        let edge = onus.agent().edge(inbound.as_ref(), callee, procedure, now);
        let call = CallStart {
            method,
            head: if inbound.is_some() { head_hash(&head) } else { 0 },
            body: request.body().is_end_stream().then_some(onus.empty_body()),
            bits: fastrand::u64(..),
            timed_below: hop.timed_below,
        };
        Self { inbound, edge, call }
    }

    /// Whether only the body can tell if this is a repeat: a call with the same method and path
    /// has ended without success in the same request, and the body is small enough to be read
    /// before it is sent.
    pub(super) fn depends_on_body<B: Body>(&self, body: &B, limit: usize) -> bool {
        self.call.body.is_none()
            && is_small(body, limit)
            && self
                .inbound
                .as_ref()
                .is_some_and(|inbound| inbound.may_be_repeat(&self.edge, self.call.head))
    }

    /// Until when the body may be read before the call starts; `None` without a limit.
    pub(super) fn latest(&self, now: Timestamp) -> Option<Timestamp> {
        let overall = self.edge.timeouts().overall.map(|limit| now.saturating_add(limit));
        overall.into_iter().chain(self.inbound.as_ref().and_then(Inbound::deadline)).min()
    }

    /// The body's digest, once it has been read.
    pub(super) fn set_body(&mut self, digest: Option<u64>) {
        self.call.body = digest;
    }

    /// Starts the call.
    pub(super) fn begin(
        self,
        onus: &Onus,
        headers: &HeaderMap,
        now: impl Fn() -> Timestamp,
    ) -> Outbound {
        onus.agent().call_started(self.edge, self.inbound, self.call, headers, now)
    }
}

/// Whether a body says that it is no longer than `limit`.
pub(super) fn is_small<B: Body>(body: &B, limit: usize) -> bool {
    body.size_hint().exact().is_some_and(|size| size <= limit as u64)
}

/// A number that is equal for requests with the same method, path and query.
fn head_hash(head: &RequestHead<'_>) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    head.method.hash(&mut hasher);
    head.uri.path().hash(&mut hasher);
    head.uri.query().hash(&mut hasher);
    hasher.finish()
}
