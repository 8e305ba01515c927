//! What goes wrong in a service, and in which of its requests.

use crate::key::Key;

/// Something that goes wrong in a service by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What happens.
    pub what: What,
    /// In which requests.
    pub when: When,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The service calls its callees and then fails.
    Fails,
    /// It fails and calls nobody.
    FailsAtOnce,
    /// It answers errors of its own and of its callees with 501 Not Implemented, in gRPC with
    /// DATA_LOSS.
    NotImplemented,
    /// It calls its callees and then closes the connection without an answer.
    Closes,
    /// It calls its callees and then never answers.
    Stalls,
    /// It never answers, and calls nobody.
    Hangs,
}

/// In which requests of a service, retries included, a fault happens.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// In all.
    Always,
    /// In this share, drawn for each request anew.
    Share(f64),
    /// In the first so many.
    First(u64),
    /// In those with these numbers, counted from 1.
    Numbers(Vec<u64>),
    /// In all with one of the first so many keys, however often they are sent.
    Keys(u64),
}

/// What a fault goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    /// The number of the request at its service, from 1.
    pub(crate) number: u64,
    pub(crate) key: Option<Key>,
}

impl Fault {
    /// A fault in every request.
    #[must_use]
    pub const fn always(what: What) -> Self {
        Self { what, when: When::Always }
    }
}

impl When {
    /// Whether the fault happens in this request; `draw` is asked for a number from 0 to 1.
    pub(crate) fn includes(&self, request: Arrived, draw: impl FnOnce() -> f64) -> bool {
        match self {
            Self::Always => true,
            Self::Share(share) => draw() < *share,
            Self::First(count) => request.number <= *count,
            Self::Numbers(numbers) => numbers.contains(&request.number),
            Self::Keys(count) => request.key.is_some_and(|key| key.is_below(*count)),
        }
    }
}
