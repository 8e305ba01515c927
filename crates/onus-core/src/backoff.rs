//! How long to wait before a retry: exponential, with full jitter.

use core::time::Duration;

use crate::time::nanos;

/// Exponential backoff with full jitter: the wait before retry n is uniform in
/// (0, min(max, base · 2^(n−1))].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    base: Duration,
    max: Duration,
}

impl Backoff {
    /// No wait at all, for tests and simulations.
    pub const NONE: Self = Self { base: Duration::ZERO, max: Duration::ZERO };

    /// A backoff from `base` up to `max`; a `max` below `base` counts as `base`.
    #[must_use]
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max: max.max(base) }
    }

    /// The longest wait before retry number `retry`, counted from 1.
    #[must_use]
    pub fn ceiling(&self, retry: u32) -> Duration {
        let doublings = retry.saturating_sub(1).min(63);
        let grown = nanos(self.base).saturating_mul(1 << doublings);
        Duration::from_nanos(grown.min(nanos(self.max)))
    }

    /// The wait before retry number `retry`: `jitter` / 2³² of the ceiling, and never zero unless
    /// the ceiling is.
    #[must_use]
    pub fn delay(&self, retry: u32, jitter: u32) -> Duration {
        let ceiling = nanos(self.ceiling(retry));
        if ceiling == 0 {
            return Duration::ZERO;
        }
        let share = (u128::from(ceiling) * (u128::from(jitter) + 1)) >> 32;
        // At most `ceiling`, so it fits.
        Duration::from_nanos((share as u64).max(1))
    }
}

impl Default for Backoff {
    /// 25 ms to 250 ms (protocol §2, row 7).
    fn default() -> Self {
        Self { base: Duration::from_millis(25), max: Duration::from_millis(250) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn ceiling_doubles_up_to_the_maximum() {
        let backoff = Backoff::default();
        for (retry, ms) in [(1, 25), (2, 50), (3, 100), (4, 200), (5, 250), (6, 250), (400, 250)] {
            assert_eq!(backoff.ceiling(retry), Duration::from_millis(ms), "retry {retry}");
        }
    }

    #[test]
    fn delay_grows_never_overflows_and_never_vanishes() {
        for base in [Duration::from_nanos(1), Duration::from_millis(3), HOUR] {
            for max in [Duration::ZERO, Duration::from_secs(1), Duration::MAX] {
                let backoff = Backoff::new(base, max);
                let mut previous = Duration::ZERO;
                for retry in 1..=64 {
                    let longest = backoff.delay(retry, u32::MAX);
                    assert_eq!(longest, backoff.ceiling(retry));
                    assert!(longest >= previous && longest >= base.min(HOUR));
                    assert!(backoff.delay(retry, 0) > Duration::ZERO);
                    previous = longest;
                }
            }
        }
        assert_eq!(Backoff::NONE.delay(9, u32::MAX), Duration::ZERO);
    }

    #[test]
    fn jitter_is_spread_over_the_whole_range() {
        let backoff = Backoff::default();
        for (jitter, micros) in [(u32::MAX / 4, 6_250), (u32::MAX / 2, 12_500)] {
            let delay = backoff.delay(1, jitter).as_nanos().abs_diff(micros * 1000);
            assert!(delay < 10, "{delay} ns off");
        }
    }
}
