//! The clock of the analysis: the only place of this crate that reads one.

use std::time::{SystemTime, UNIX_EPOCH};

use onus_core::Timestamp;

/// A point in time, in milliseconds since 1970. Reports, windows and classes outlive the process,
/// so that all of them are told by the wall clock; one that steps back makes nothing younger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Millis(pub(crate) u64);

impl Millis {
    #[expect(clippy::disallowed_methods, reason = "the one clock of the analysis")]
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn minute(self) -> u32 {
        u32::try_from(self.0 / 60_000).unwrap_or(u32::MAX)
    }

    /// As the estimator takes it.
    pub(crate) fn timestamp(self) -> Timestamp {
        Timestamp::from_nanos(self.0.saturating_mul(1_000_000))
    }

    pub(crate) fn saturating_sub(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
