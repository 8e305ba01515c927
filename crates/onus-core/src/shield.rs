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
