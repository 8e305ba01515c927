//! What clients do wrong, as it is counted.

use std::error::Error as _;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::flood::FLOOD;
use crate::pool::h2_error;

/// Why a request, or a whole connection, of a client was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientError {
    /// The head of a request is no HTTP/1.1.
    Malformed,
    /// The head of an HTTP/1.1 request is too large, or has too many fields.
    LargeHead,
    /// A request has two meanings.
    Ambiguous,
    /// A connection breaks the rules of HTTP/2.
    Http2Error,
    /// A connection sends without measure: streams that it resets, headers that do not end, frames
    /// with little or nothing in them.
    Http2Flood,
}

/// How often each of them was met.
#[derive(Debug, Default)]
pub(crate) struct ClientErrors([AtomicU64; ClientError::ALL.len()]);

impl ClientError {
    pub(crate) const ALL: [Self; 5] =
        [Self::Malformed, Self::LargeHead, Self::Ambiguous, Self::Http2Error, Self::Http2Flood];

    /// As metrics spell it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::LargeHead => "large-head",
            Self::Ambiguous => "ambiguous",
            Self::Http2Error => "http2-error",
            Self::Http2Flood => "http2-flood",
        }
    }

    /// What a client did whose connection ended so; `None` where it is not to blame.
    pub(crate) fn of(error: &hyper::Error) -> Option<Self> {
        if error.is_parse_too_large() {
            return Some(Self::LargeHead);
        }
        if error.is_parse() {
            return Some(Self::Malformed);
        }
        // Errors of the connection itself come as they are.
        let io = error.source().and_then(|error| error.downcast_ref::<io::Error>());
        if let Some(io) = io {
            return (io.kind() == FLOOD).then_some(Self::Http2Flood);
        }
        let error = h2_error(error)?;
        match error.reason().filter(|_| error.is_library()) {
            Some(h2::Reason::ENHANCE_YOUR_CALM) => Some(Self::Http2Flood),
            Some(h2::Reason::NO_ERROR) | None => None,
            Some(_) => Some(Self::Http2Error),
        }
    }
}

impl ClientErrors {
    pub(crate) fn count(&self, error: ClientError) {
        self.0[error as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, error: ClientError) -> u64 {
        self.0[error as usize].load(Ordering::Relaxed)
    }
}
