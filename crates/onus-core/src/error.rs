//! Which answers are errors: the callee's failures of protocol §1.

use core::fmt;

/// How an attempt failed, whoever is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallError {
    /// An HTTP status, 400 to 599.
    Http(u16),
    /// A gRPC status code, 1 to 16.
    Grpc(u8),
    /// No connection could be made.
    Connect,
    /// The connection broke before the reply was complete.
    Reset,
    /// The reply was not valid in its protocol.
    Protocol,
    /// The caller's own timer ended the attempt.
    Timeout,
}

impl fmt::Display for CallError {
    /// The spelling in logs, settings and vectors: `http-503`, `grpc-14`, `connect`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(status) => write!(f, "http-{status}"),
            Self::Grpc(code) => write!(f, "grpc-{code}"),
            Self::Connect => f.write_str("connect"),
            Self::Reset => f.write_str("reset"),
            Self::Protocol => f.write_str("protocol"),
            Self::Timeout => f.write_str("timeout"),
        }
    }
}

impl CallError {
    /// The errors without a reply.
    pub const TRANSPORT: [Self; 4] = [Self::Connect, Self::Reset, Self::Protocol, Self::Timeout];

    /// Whether the callee answered at all.
    #[must_use]
    pub const fn is_reply(self) -> bool {
        match self {
            Self::Http(_) | Self::Grpc(_) => true,
            Self::Connect | Self::Reset | Self::Protocol | Self::Timeout => false,
        }
    }
}

/// A set of errors: which answers are failures on an edge, or which of them a policy retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorSet([u64; 4]);

/// gRPC codes that are failures of the callee: UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED,
/// ABORTED, INTERNAL, UNAVAILABLE, DATA_LOSS.
const GRPC_FAILURES: [u8; 7] = [2, 4, 8, 10, 13, 14, 15];

impl ErrorSet {
    /// No error.
    pub const EMPTY: Self = Self([0; 4]);

    /// The errors of protocol §1: HTTP 5xx and 429, seven gRPC codes, every error without a reply.
    pub const FAILURES: Self = {
        let mut set = Self::EMPTY;
        set.insert(CallError::Http(429));
        let mut status = 500;
        while status <= 599 {
            set.insert(CallError::Http(status));
            status += 1;
        }
        let mut i = 0;
        while i < GRPC_FAILURES.len() {
            set.insert(CallError::Grpc(GRPC_FAILURES[i]));
            i += 1;
        }
        let mut i = 0;
        while i < CallError::TRANSPORT.len() {
            set.insert(CallError::TRANSPORT[i]);
            i += 1;
        }
        set
    };

    /// [`Self::FAILURES`].
    #[must_use]
    pub const fn failures() -> Self {
        Self::FAILURES
    }

    /// Adds `error`; one that is out of [`CallError`]'s ranges is not an error and adds nothing.
    pub const fn insert(&mut self, error: CallError) {
        if let Some(bit) = bit(error) {
            self.0[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Takes `error` out.
    pub fn remove(&mut self, error: CallError) {
        if let Some(bit) = bit(error) {
            self.0[bit / 64] &= !(1 << (bit % 64));
        }
    }

    /// Whether `error` is in the set.
    #[must_use]
    pub fn contains(&self, error: CallError) -> bool {
        bit(error).is_some_and(|bit| self.0[bit / 64] & (1 << (bit % 64)) != 0)
    }
}

impl Default for ErrorSet {
    /// [`ErrorSet::failures`].
    fn default() -> Self {
        Self::failures()
    }
}

impl FromIterator<CallError> for ErrorSet {
    fn from_iter<I: IntoIterator<Item = CallError>>(errors: I) -> Self {
        let mut set = Self::EMPTY;
        for error in errors {
            set.insert(error);
        }
        set
    }
}

/// The place of `error` among the 256 bits: 200 HTTP statuses, 17 gRPC codes, 4 transport errors.
const fn bit(error: CallError) -> Option<usize> {
    match error {
        CallError::Http(status @ 400..=599) => Some(status as usize - 400),
        CallError::Grpc(code @ 1..=16) => Some(200 + code as usize),
        CallError::Connect => Some(217),
        CallError::Reset => Some(218),
        CallError::Protocol => Some(219),
        CallError::Timeout => Some(220),
        CallError::Http(_) | CallError::Grpc(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_those_of_the_protocol() {
        // [term-4]
        let set = ErrorSet::failures();
        for status in 0..=1000 {
            let expected = status == 429 || (500..=599).contains(&status);
            assert_eq!(set.contains(CallError::Http(status)), expected, "HTTP {status}");
        }
        for code in 0..=40 {
            let expected = [2, 4, 8, 10, 13, 14, 15].contains(&code);
            assert_eq!(set.contains(CallError::Grpc(code)), expected, "gRPC {code}");
        }
        for error in CallError::TRANSPORT {
            assert!(set.contains(error), "{error:?}");
        }
    }

    #[test]
    fn every_error_has_a_place_of_its_own() {
        let errors = (400..=599)
            .map(CallError::Http)
            .chain((1..=16).map(CallError::Grpc))
            .chain(CallError::TRANSPORT);
        for error in errors.clone() {
            let only: ErrorSet = [error].into_iter().collect();
            assert_eq!(errors.clone().filter(|&e| only.contains(e)).count(), 1, "{error:?}");
            let mut without = only;
            without.remove(error);
            assert_eq!(without, ErrorSet::EMPTY);
        }
    }
}
