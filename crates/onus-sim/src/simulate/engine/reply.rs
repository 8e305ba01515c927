//! How an attempt ended for its caller.

use onus_core::{CallError, CalleeClaim, Claim, Failure, Pushback};

/// How an attempt ended for its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ok,
    Error(ErrorReply),
    /// No answer, for this reason.
    Silent(CallError),
}

/// An answer that is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ErrorReply {
    pub(super) error: CallError,
    pub(super) claim: Option<Claim>,
    /// Which attempt the callee saw.
    pub(super) attempt: Option<u32>,
    pub(super) veto: bool,
    pub(super) pushback: bool,
}

impl Reply {
    /// What the caller's decision sees; `None` for an answer without an error.
    pub(super) const fn failure(self, replayable: bool) -> Option<Failure> {
        match self {
            Self::Ok => None,
            Self::Error(reply) => Some(Failure {
                error: reply.error,
                claim: reply.claim,
                attempt: reply.attempt,
                pushback: if reply.pushback { Pushback::Refused } else { Pushback::None },
                replayable,
                body_broke: false,
            }),
            Self::Silent(error) => Some(Failure {
                error,
                claim: None,
                attempt: None,
                pushback: Pushback::None,
                replayable,
                body_broke: false,
            }),
        }
    }

    /// Whether a layer that obeys vetoes stops here.
    pub(super) const fn vetoes(self) -> bool {
        match self {
            Self::Error(reply) => reply.veto,
            Self::Ok | Self::Silent(_) => false,
        }
    }

    /// What a client reads; `None` for an answer without an error.
    pub(super) fn read(self) -> Option<CalleeClaim> {
        match self {
            Self::Ok => None,
            Self::Error(reply) => {
                Some(reply.claim.map_or(CalleeClaim::Missing, CalleeClaim::Reply))
            }
            Self::Silent(_) => Some(CalleeClaim::Silent),
        }
    }

    pub(super) const fn is_silent(self) -> bool {
        match self {
            Self::Silent(_) => true,
            Self::Ok | Self::Error(_) => false,
        }
    }
}

/// What a service answers that fails.
pub(super) const ORDINARY: CallError = CallError::Http(503);
