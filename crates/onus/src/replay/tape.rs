//! The caller's body on the hop that may retry: read once, sent as often as needed.

use std::fmt;
use std::sync::Arc;

use http_body::Body;

use super::attempt::Attempt;
use super::body::ReplayBody;
use super::digest::empty_digest;
use super::error::NotReplayable;
use super::limits::ReplayLimits;
use super::reader::Reader;
use super::state::Shared;
use super::trail::Trail;

/// The body of a call that may be retried.
///
/// Its owner starts attempts. Each one reads what the attempts before it have read, and goes on
/// with the caller's body from there. Frames are kept up to the limits; beyond them they are only
/// passed on, and what was kept is let go of.
///
/// Dropping the tape is the commit: no attempt will follow, so nothing is kept from then on. The
/// running attempt reads on unharmed.
pub struct Tape<B> {
    // Nothing is shared, and nothing allocated, when the body is empty.
    shared: Option<Arc<Shared<B>>>,
    trail: Option<Arc<Trail>>,
}

impl<B: Body> Tape<B> {
    /// A tape of `body`, of which nothing is read before an attempt reads it.
    pub fn new(body: B, limits: &ReplayLimits) -> Self {
        let empty = body.is_end_stream();
        Self { shared: (!empty).then(|| Arc::new(Shared::new(body, limits))), trail: None }
    }

    /// With what the attempts leave for each other.
    #[must_use]
    pub fn with_trail(mut self) -> Self {
        self.trail = Some(Arc::default());
        self
    }

    /// Whether the whole body has been read: the request has ended as far as its caller is
    /// concerned.
    pub fn is_read(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.lock().is_read())
    }

    /// A number that is equal for equal bodies (see [`DigestCell`](super::DigestCell)), when all
    /// data of the body was read and is kept.
    pub fn digest(&self) -> Option<u64> {
        match &self.shared {
            Some(shared) => shared.lock().digest(),
            None => Some(empty_digest()),
        }
    }
}

impl<B> Tape<B> {
    /// Starts an attempt at the beginning of the body.
    ///
    /// The body of an earlier attempt ends with
    /// [`ReplayError::Superseded`](super::ReplayError::Superseded) if it is still being read.
    pub fn attempt(&self, attempt: Attempt) -> Result<ReplayBody<B>, NotReplayable> {
        let body = match &self.shared {
            Some(shared) => ReplayBody::replay(Reader::begin(shared, false)?, attempt),
            None => ReplayBody::empty(attempt),
        };
        Ok(body.with_trail(self.trail.clone()))
    }

    /// Starts to read the body before an attempt is made. What is read this way is all kept: the
    /// reading ends, without an error, where the limits allow no more.
    pub(crate) fn read_ahead(&self) -> Result<ReplayBody<B>, NotReplayable> {
        match &self.shared {
            Some(shared) => Ok(ReplayBody::replay(Reader::begin(shared, true)?, Attempt::FIRST)),
            None => Ok(ReplayBody::empty(Attempt::FIRST)),
        }
    }

    /// Whether another attempt would send the whole body.
    ///
    /// A body beyond the limits is replayable until something of it was read: a connection that
    /// was refused costs no body.
    pub fn replayable(&self) -> Result<(), NotReplayable> {
        match &self.shared {
            Some(shared) => shared.lock().replayable(),
            None => Ok(()),
        }
    }
}

impl<B> Drop for Tape<B> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.with(|state, leftovers| state.release(leftovers));
        }
    }
}

impl<B> fmt::Debug for Tape<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape")
            .field("empty", &self.shared.is_none())
            .field("replayable", &self.replayable())
            .finish()
    }
}
