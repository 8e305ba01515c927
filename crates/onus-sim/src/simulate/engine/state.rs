//! Requests and calls under way.

use onus_core::{InboundCall, OutboundCall, SlotId};

use super::slab::Ref;
use crate::simulate::outcome::Counted;

/// A request that a service handles.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) service: u32,
    /// The instance, among all instances.
    pub(super) instance: u32,
    pub(super) origin: Origin,
    /// Which of the service's requests this is, counted from 1.
    pub(super) number: u64,
    pub(super) phase: Phase,
    pub(super) inbound: InboundCall,
    /// Whether it made calls that cannot be tied to it.
    pub(super) untied_calls: bool,
    pub(super) deadline: Option<u64>,
    /// The next step of its calls, and how often the edge of the step before is still to be called.
    pub(super) step: u32,
    pub(super) more: u32,
    /// Calls without an outcome.
    pub(super) open_calls: u32,
    /// The latest of them.
    pub(super) last_call: Option<Ref>,
    /// Whether a call failed that it does not survive.
    pub(super) failed: bool,
}

/// Where a request comes from, and what it says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The call and its attempt; `None` for a request from outside.
    pub(super) caller: Option<(Ref, u32)>,
    /// When the request from outside came that it serves in the end.
    pub(super) root_at: u64,
    pub(super) bad_key: bool,
    /// Whether no retry lies between it and the request from outside.
    pub(super) original: bool,
    pub(super) marked: bool,
    /// The number of the attempt, by whatever header says it.
    pub(super) attempt: u32,
    pub(super) depth: u16,
}

impl Counted for Origin {
    fn is_original(&self) -> bool {
        self.original
    }

    fn has_bad_key(&self) -> bool {
        self.bad_key
    }

    fn root_at(&self) -> u64 {
        self.root_at
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Waits for a worker.
    Queued,
    /// Has a worker, and perhaps never gives it back.
    Working,
    /// Makes its calls.
    Calling,
}

/// A logical call of a request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) request: Ref,
    pub(super) edge: u32,
    /// Where the caller's instance remembers the edge.
    pub(super) memory: u32,
    pub(super) slot: Option<SlotId>,
    pub(super) outbound: OutboundCall,
    /// Counts sends, so that what belongs to an earlier one is told apart.
    pub(super) attempt: u32,
    /// Sends of the layer below for one attempt.
    pub(super) layer_attempt: u32,
    /// The turn of the handler's own loop.
    pub(super) round: u32,
    /// Who serves the attempt under way.
    pub(super) callee: Option<Ref>,
    /// The instance that served the attempt before.
    pub(super) last_instance: Option<u32>,
    /// The call that the request made before, if it has no outcome either.
    pub(super) before: Option<Ref>,
}
