//! The load: requests as fast as they are answered, or at a rate whatever the answers do.

pub(crate) mod call;
pub(crate) mod closed;
pub(crate) mod line;
pub(crate) mod open;
pub(crate) mod pacer;
pub(crate) mod schedule;
pub(crate) mod tally;
