//! Why a body cannot be sent again, and what an attempt reads when it lost its body.

use std::error::Error as StdError;

use thiserror::Error;

/// The error of a [`ReplayBody`](super::ReplayBody): that of the caller's body as it was, or a
/// [`ReplayError`].
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why the body of a call cannot be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum NotReplayable {
    /// More was sent than one request may keep.
    #[error("replay a body over the limit of one request")]
    OverLimit,
    /// The memory which all requests share is used up.
    #[error("replay a body that found the shared replay memory used up")]
    Memory,
    /// The caller's body ended with an error.
    #[error("replay a body that failed itself")]
    Error,
}

impl NotReplayable {
    /// Every reason, for metrics that start at zero.
    pub const ALL: [Self; 3] = [Self::OverLimit, Self::Memory, Self::Error];

    /// The spelling in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OverLimit => "over-limit",
            Self::Memory => "memory",
            Self::Error => "error",
        }
    }
}

/// What an attempt reads in place of a body that it may not or cannot read any more.
///
/// Errors of the caller's body are not wrapped: they reach the attempt that read them as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ReplayError {
    /// A later attempt of the same call has taken the body over.
    #[error("send a body that a later attempt has taken over")]
    Superseded,
    /// The caller's body failed while an earlier attempt was reading it, and the error went there.
    #[error("send a body that failed under an earlier attempt")]
    Broken,
}
