//! A span, reduced to what counts.

use onus_core::{CallError, ErrorSet};

/// A span as it is kept: 64 bytes, whatever the dump says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace: u128,
    pub(crate) id: u64,
    /// Zero where there is none.
    pub(crate) parent: u64,
    /// Microseconds since 1970; zero where it is not known.
    pub(crate) start: u64,
    /// Where the span is in its file, in bytes.
    pub(crate) at: u64,
    /// The number of the service's name.
    pub(crate) service: u32,
    /// The number of the name that the span gives to who it calls; zero where it gives none.
    pub(crate) peer: u32,
    pub(crate) file: u16,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
}

/// The side of a call that a span is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Neither, or the dump does not say.
    #[default]
    Internal,
    /// The caller's: a client or a producer.
    Caller,
    /// The callee's: a server or a consumer.
    Callee,
}

/// What is true of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// It carries an error.
    pub(crate) const ERROR: Self = Self(1);
    /// Its status says that its error is none of the callee's failures.
    pub(crate) const NOT_A_FAILURE: Self = Self(2);
    /// A list of failed spans from elsewhere has it.
    pub(crate) const LISTED: Self = Self(4);
    /// Its dump has no place for errors: without one it is not known to have succeeded.
    pub(crate) const MUTE: Self = Self(8);

    pub(crate) const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    pub(crate) const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// What is true of a span of which two records say this.
    pub(crate) const fn joined(self, other: Self) -> Self {
        let mute = self.0 & other.0 & Self::MUTE.0;
        Self((self.0 | other.0) & !Self::MUTE.0 | mute)
    }

    pub(crate) const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }
}

/// What a format has read of a span so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) at: u64,
    pub(crate) trace: Option<u128>,
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) start: u64,
    pub(crate) kind: Kind,
    pub(crate) error: bool,
    /// How it ended, where a status says so.
    pub(crate) status: Option<CallError>,
    pub(crate) service: u32,
    /// The dump has no place for errors.
    pub(crate) mute: bool,
    peer: u32,
    /// How much the name of the peer is worth; zero without one.
    peer_rank: u8,
}

impl Draft {
    pub(crate) fn new(at: u64) -> Self {
        Self { at, ..Self::default() }
    }

    /// A name for who is called; of several the one with the highest rank stays.
    pub(crate) fn peer(&mut self, number: u32, rank: u8) {
        if number != 0 && rank > self.peer_rank {
            self.peer = number;
            self.peer_rank = rank;
        }
    }

    /// The span, if it has the ids that make it one.
    pub(crate) fn span(&self, file: u16) -> Option<Span> {
        let trace = self.trace?;
        if self.id == 0 {
            return None;
        }
        let mut flags = Flags::default();
        if self.error {
            flags = flags.with(Flags::ERROR);
        }
        if self.status.is_some_and(|status| !ErrorSet::FAILURES.contains(status)) {
            flags = flags.with(Flags::NOT_A_FAILURE);
        }
        if self.mute {
            flags = flags.with(Flags::MUTE);
        }
        Some(Span {
            trace,
            id: self.id,
            parent: self.parent,
            start: self.start,
            at: self.at,
            service: self.service,
            peer: self.peer,
            file,
            kind: self.kind,
            flags,
        })
    }
}

/// An HTTP status that is an error; others say nothing about why a span has one.
pub(crate) fn http_status(status: u64) -> Option<CallError> {
    (400..600).contains(&status).then_some(CallError::Http(status as u16))
}

/// A gRPC status that is an error.
pub(crate) fn grpc_status(code: u64) -> Option<CallError> {
    (1..=16).contains(&code).then_some(CallError::Grpc(code as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_as_small_as_it_says() {
        assert_eq!(size_of::<Span>(), 64);
    }

    #[test]
    fn needs_both_ids() {
        let draft = |trace, id| Draft { trace, id, ..Draft::new(5) };
        assert!(draft(Some(1), 2).span(0).is_some());
        assert!(draft(None, 2).span(0).is_none());
        assert!(draft(Some(1), 0).span(0).is_none());
    }

    #[test]
    fn a_status_tells_failures_from_client_errors() {
        // [class-2]
        for (status, failure) in [
            (None, true),
            (http_status(404), false),
            (http_status(401), false),
            (http_status(429), true),
            (http_status(500), true),
            (http_status(503), true),
            // A redirect does not explain an error.
            (http_status(302), true),
            (grpc_status(0), true),
            (grpc_status(5), false),
            (grpc_status(1), false),
            (grpc_status(14), true),
        ] {
            let draft = Draft { trace: Some(1), id: 1, error: true, status, ..Draft::new(0) };
            let span = draft.span(0).expect("it has ids");
            assert_eq!(span.flags.has(Flags::NOT_A_FAILURE), !failure, "{status:?}");
        }
    }

    #[test]
    fn the_best_name_of_the_peer_stays() {
        let mut draft = Draft { trace: Some(1), id: 1, ..Draft::new(0) };
        for (number, rank) in [(7, 2), (8, 1), (0, 9), (9, 2)] {
            draft.peer(number, rank);
        }
        assert_eq!(draft.span(0).map(|span| span.peer), Some(7));
    }
}
