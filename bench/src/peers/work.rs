//! What is asked of every subject.

use serde::{Serialize, Serializer};

use super::backend::{ERROR, LARGE, LARGE_LENGTH, SMALL, SMALL_BODY};
use super::connection::Protocol;
use super::load::call::{Call, Shape};
use super::subject::Subject;

/// What is asked of every subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// 12 bytes over HTTP/1.1, as fast as they come.
    Http1Saturation,
    /// The same, answered with 503.
    Http1Error,
    /// 12 bytes over HTTP/1.1, 2,000 requests a second.
    Http1Rate,
    /// 64 KiB over HTTP/1.1, as fast as they come.
    Http1Large,
    /// 12 bytes over HTTP/2, as fast as they come.
    Http2Saturation,
    /// 64 KiB over HTTP/2, as fast as they come.
    Http2Large,
    /// Unary calls of gRPC, as fast as they come.
    Grpc,
}

/// How fast requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// The next one when the last one was answered.
    Saturation,
    /// So many a second, whatever the answers do.
    PerSecond(f64),
}

/// How many places to send from: connections, and streams on each where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) connections: usize,
    pub(crate) streams: usize,
}

impl Work {
    pub(crate) const ALL: [Self; 7] = [
        Self::Http1Saturation,
        Self::Http1Error,
        Self::Http1Rate,
        Self::Http1Large,
        Self::Http2Saturation,
        Self::Http2Large,
        Self::Grpc,
    ];

    /// By which it is chosen, and found in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http1Saturation => "h1-saturation",
            Self::Http1Error => "h1-error",
            Self::Http1Rate => "h1-rate",
            Self::Http1Large => "h1-large",
            Self::Http2Saturation => "h2-saturation",
            Self::Http2Large => "h2-large",
            Self::Grpc => "grpc",
        }
    }

    /// What is compared with it stands close to it in time.
    pub(crate) fn beside(self) -> Self {
        match self {
            Self::Http1Error => Self::Http1Saturation,
            Self::Http1Saturation
            | Self::Http1Rate
            | Self::Http1Large
            | Self::Http2Saturation
            | Self::Http2Large
            | Self::Grpc => self,
        }
    }

    pub(crate) fn call(self) -> Call {
        let get = |status, length| Shape::Get { status, length };
        let small = SMALL_BODY.len();
        let (protocol, path, shape) = match self {
            Self::Http1Saturation | Self::Http1Rate => (Protocol::Http1, SMALL, get(200, small)),
            Self::Http1Error => (Protocol::Http1, ERROR, get(503, small)),
            Self::Http1Large => (Protocol::Http1, LARGE, get(200, LARGE_LENGTH)),
            Self::Http2Saturation => (Protocol::Http2, SMALL, get(200, small)),
            Self::Http2Large => (Protocol::Http2, LARGE, get(200, LARGE_LENGTH)),
            Self::Grpc => (Protocol::Http2, "/bench.Bench/Call", Shape::Grpc),
        };
        Call { protocol, path, shape, is_claimed: false }
    }

    pub(crate) fn pace(self) -> Pace {
        match self {
            Self::Http1Rate => Pace::PerSecond(2_000.0),
            Self::Http1Saturation
            | Self::Http1Error
            | Self::Http1Large
            | Self::Http2Saturation
            | Self::Http2Large
            | Self::Grpc => Pace::Saturation,
        }
    }

    pub(crate) fn lines(self) -> Lines {
        let lines = |connections, streams| Lines { connections, streams };
        match self {
            Self::Http1Saturation | Self::Http1Error => lines(32, 1),
            Self::Http1Rate => lines(16, 1),
            Self::Http1Large => lines(8, 1),
            Self::Http2Saturation | Self::Grpc => lines(4, 16),
            Self::Http2Large => lines(4, 4),
        }
    }

    /// Whether a subject does this work: nothing in between has no CPU to compare, what an error
    /// costs is asked of those that look at it, and filters see the same of every load.
    pub(crate) fn is_for(self, subject: Subject) -> bool {
        let is_paced = match self.pace() {
            Pace::Saturation => false,
            Pace::PerSecond(_) => true,
        };
        let looks_at_errors = matches!(subject, Subject::Onus | Subject::Bare);
        let is_for_filters = self == Self::Http1Saturation;
        let has_filters = matches!(subject, Subject::EnvoyAgain | Subject::EnvoyWith(_));
        subject.speaks(self.call().protocol)
            && (!has_filters || is_for_filters)
            && (subject != Subject::Direct || is_paced)
            && (self != Self::Http1Error || looks_at_errors)
    }
}

impl Serialize for Work {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
