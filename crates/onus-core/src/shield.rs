//! The shield: a service answers every error unclaimed until an operator's expiry.

use core::time::Duration;

use crate::time::Timestamp;

/// How long a shield holds unless the operator says otherwise.
pub const SHIELD_DEFAULT: Duration = Duration::from_secs(15 * 60);

/// A shield with its expiry; it answers in every mode, [`Mode::Off`](crate::Mode) included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shield {
    until: Timestamp,
}

impl Shield {
    /// A shield from now until `until`.
    #[must_use]
    pub const fn until(until: Timestamp) -> Self {
        Self { until }
    }

    /// Whether the shield is still up at `now`.
    #[must_use]
    pub fn holds(self, now: Timestamp) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_until_its_expiry() {
        // [shield-2]
        let set = Timestamp::from_nanos(7);
        let shield = Shield::until(set.saturating_add(SHIELD_DEFAULT));
        let quarter = 15 * 60 * 1_000_000_000;
        for (nanos, holds) in [(0, true), (7 + quarter - 1, true), (7 + quarter, false)] {
            assert_eq!(shield.holds(Timestamp::from_nanos(nanos)), holds, "{nanos}");
        }
    }
}
