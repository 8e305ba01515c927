//! Why a callee gave no answer.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;

use onus::outbound::ClassifyError;
use onus::{AttemptError, CallError};

/// Why a callee gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// Its name has no address.
    #[error("resolve {host}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver says, or that it found nothing.
        #[source]
        source: io::Error,
    },
    /// No connection could be made.
    #[error("connect to {address}")]
    Connect {
        /// The instance.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// No connection was there in time.
    #[error("connect to {address} in time")]
    ConnectTimeout {
        /// The instance.
        address: SocketAddr,
    },
    /// It is where the proxy itself listens.
    #[error("connect to {address}: there the proxy itself listens, and the request would go round")]
    Loop {
        /// The address.
        address: SocketAddr,
    },
    /// There is no room for a connection, nor to wait for one.
    #[error("wait for a connection to {address}: all are in use, and so is the queue for them")]
    Full {
        /// The instance.
        address: SocketAddr,
    },
    /// The connection broke, or what came over it cannot be meant.
    #[error("get an answer from {address}")]
    Exchange {
        /// The instance.
        address: SocketAddr,
        /// What hyper says.
        #[source]
        source: hyper::Error,
    },
}

impl PoolError {
    /// Whether the body of the request itself cannot be meant, or breaks: nobody below is to blame.
    pub(crate) fn is_of_request(&self) -> bool {
        match self {
            // The body is another connection's, whose error is the cause of this one's.
            Self::Exchange { source, .. } => {
                source.is_user() && causes(source).any(|cause| cause.is::<hyper::Error>())
            }
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Loop { .. }
            | Self::Full { .. } => false,
        }
    }

    /// Whether what came of the request's body cannot be meant: a client that is gone sent no such.
    pub(crate) fn is_malformed_request(&self) -> bool {
        let is_wrong = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
        };
        self.is_of_request() && causes(self).any(|cause| cause.downcast_ref().is_some_and(is_wrong))
    }

    /// What failed, for people.
    pub(crate) fn detail(&self) -> String {
        let mut text = format!("failed to {self}");
        if let Self::Exchange { source, .. } = self
            && (source.is_canceled() || source.is_user())
            && !self.is_of_request()
        {
            // hyper speaks of its own tasks there.
            text.push_str(": the connection ended");
            return text;
        }
        causes(self).fold(text, |text, cause| format!("{text}: {cause}"))
    }

    /// The type of RFC 9209 of what TLS says, if it says something.
    pub(crate) fn tls(&self) -> Option<&'static str> {
        causes(self).find_map(|cause| {
            let inner = cause.downcast_ref::<io::Error>()?.get_ref()?;
            let error = inner.downcast_ref::<rustls::Error>()?;
            Some(if matches!(error, rustls::Error::InvalidCertificate(_)) {
                "tls_certificate_error"
            } else if matches!(error, rustls::Error::AlertReceived(_)) {
                "tls_alert_received"
            } else {
                "tls_protocol_error"
            })
        })
    }

    /// What kind of failure it is.
    pub(crate) fn kind(&self) -> AttemptError {
        AttemptError::Failed(match self {
            Self::Resolve { .. } | Self::Connect { .. } | Self::ConnectTimeout { .. } => {
                CallError::Connect
            }
            // Nothing was sent, and nothing would be the second time.
            Self::Full { .. } | Self::Loop { .. } => return AttemptError::Refused,
            Self::Exchange { source, .. } if source.is_timeout() => CallError::Timeout,
            Self::Exchange { source, .. } if is_protocol_error(source) => CallError::Protocol,
            Self::Exchange { .. } => CallError::Reset,
        })
    }
}

fn causes(error: &dyn StdError) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// Tells the errors of a pool apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolErrors;

impl ClassifyError<PoolError> for PoolErrors {
    fn classify(&self, error: &PoolError) -> AttemptError {
        error.kind()
    }
}

/// Whether a request that failed with this has provably not been worked on: its stream was refused,
/// or is one of those that a callee which goes away says it has not seen.
pub(crate) fn is_unprocessed(error: &hyper::Error) -> bool {
    h2_error(error).is_some_and(|error| {
        error.is_remote()
            && (error.reason() == Some(h2::Reason::REFUSED_STREAM) || error.is_go_away())
    })
}

fn is_protocol_error(error: &hyper::Error) -> bool {
    error.is_parse()
        || h2_error(error).is_some_and(|error| {
            error.is_library() && error.reason().is_some_and(|reason| reason != h2::Reason::CANCEL)
        })
}

/// What h2 says of an error of hyper, if it says something.
pub(crate) fn h2_error(error: &hyper::Error) -> Option<&h2::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}
