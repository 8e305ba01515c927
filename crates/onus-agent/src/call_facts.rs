//! What a host tells of a call, and how a call that failed looks to the application.

use std::time::SystemTime;

use http::HeaderMap;
use onus_core::{CallError, CalleeClaim, MethodKind, Stop};

use crate::inbound::Origin;

/// What a host knows of a call before its first attempt.
#[derive(Clone, Copy, Debug)]
pub struct CallStart {
    /// What the request's method says about sending it twice.
    pub method: MethodKind,
    /// A hash of method, path and query.
    pub head: u64,
    /// A digest of the body, if it is known already.
    pub body: Option<u64>,
    /// Random bits, for the lot of a call that belongs to no request.
    pub bits: u64,
    /// Whether the transport below ends an attempt by itself when the time in `grpc-timeout` is
    /// over, as gRPC libraries do. If that were the time which the callee has, its answer at the
    /// last moment would never be read: attempts then say it in the other header, and leave the
    /// transport longer than this caller listens.
    pub timed_below: bool,
}

/// A failed attempt, as a host sees it.
#[derive(Clone, Copy, Debug)]
pub struct FailedAttempt<'a> {
    /// What went wrong.
    pub error: CallError,
    /// The header block that carries the outcome, if there was a reply.
    pub headers: Option<&'a HeaderMap>,
    /// Whether the request can be sent again and no response has been passed on.
    pub replayable: bool,
    /// Whether the request's own body broke while it was sent.
    pub body_broke: bool,
    /// The wall clock, for a `Retry-After` that names a date.
    pub wall: SystemTime,
}

/// How a call that failed for good looks to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOutcome {
    /// Why there was no further attempt.
    pub stop: Stop,
    /// What the last attempt read.
    pub read: CalleeClaim,
    /// Attempts by anyone.
    pub attempts: u32,
    /// The service that first failed and how many hops below this one it is, as the callee says.
    pub origin: Option<Origin>,
}
