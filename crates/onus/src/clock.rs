//! The clock of a process: the only place of this crate that reads one.

use std::pin::Pin;
use std::time::SystemTime;

use onus_agent::Timestamp;
use tokio::time::{Instant, Sleep};

use crate::told::told;

/// Time since this clock was made. It follows tokio's clock, so that paused tests decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

/// A timer that is pinned already.
pub(crate) type Timer = Pin<Box<Sleep>>;

impl Clock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Timestamp {
        let elapsed = Instant::now().saturating_duration_since(self.start);
        Timestamp::ZERO.saturating_add(elapsed)
    }

    /// A timer for `at`. `None`, and a panic that is caught and reported, where the runtime has no
    /// timers: a time limit that somebody puts on a request must not cost it.
    pub(crate) fn timer(self, at: Timestamp) -> Option<Timer> {
        told(|| Box::pin(tokio::time::sleep_until(self.instant(at))))
    }

    /// The instant of `at` on tokio's clock; far in the future where it cannot be represented.
    fn instant(self, at: Timestamp) -> Instant {
        let since_start = at.saturating_since(Timestamp::ZERO);
        self.start.checked_add(since_start).unwrap_or(self.start + FAR)
    }

    /// The wall clock, for headers that name a date.
    #[expect(clippy::disallowed_methods, reason = "the layers' one clock")]
    pub(crate) fn wall(self) -> SystemTime {
        SystemTime::now()
    }
}

/// What tokio itself takes for "never": 30 years.
const FAR: std::time::Duration = std::time::Duration::from_secs(86_400 * 365 * 30);
