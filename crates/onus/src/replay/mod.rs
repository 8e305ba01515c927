//! Sending a request body again.
//!
//! A body is a stream: once an attempt has read it, it is gone, and a second attempt would send
//! nothing or the rest. A [`Tape`] keeps what was read, within [`ReplayLimits`], and gives each
//! attempt a [`ReplayBody`] that reads the same frames again and then goes on with the caller's
//! body. Where a hop may not retry, [`ReplayBody::once`] passes the caller's body through.
//!
//! What always holds:
//!
//! - An attempt sends the whole body, trailers included, or ends with an error. Never a part.
//! - One attempt reads at a time. Starting another takes the body over, also while the earlier one
//!   is still sending (a server may answer early); that one ends with [`ReplayError::Superseded`].
//! - The limits never make an error. Beyond them nothing is kept, the running attempt goes on, and
//!   [`Tape::replayable`] says why there can be no other.
//! - Nothing is kept for attempts that will not come: dropping the tape commits the running one.
//! - A size is exact only as far as the caller's body said so, and never while trailers follow.

mod attempt;
mod body;
mod digest;
mod error;
mod limits;
mod reader;
mod record;
mod state;
mod tape;
#[cfg(test)]
mod tests;
mod trail;

pub use attempt::Attempt;
pub use body::ReplayBody;
pub use digest::{DigestCell, empty_digest};
pub use error::{BoxError, NotReplayable, ReplayError};
pub use limits::ReplayLimits;
pub use tape::Tape;
pub use trail::Trail;
