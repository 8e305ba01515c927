//! Time as the core sees it: a number that the host hands in.

use core::time::Duration;

/// A point on the host's monotonic clock, in nanoseconds since a start of the host's choice.
///
/// The core never reads a clock. A host derives this from `Instant`, a simulator makes it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The host's start.
    pub const ZERO: Self = Self(0);

    /// The point `nanos` nanoseconds after the host's start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the host's start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if `earlier` is later, as after a step back of the clock.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This point plus `duration`, or the last representable point (584 years).
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

/// `duration` in nanoseconds, capped at `u64::MAX` (584 years).
pub(crate) const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}
