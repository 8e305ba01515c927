//! Probes: a few suppressed retries are made after all, to measure what suppression costs
//! (protocol §10).

use core::time::Duration;

use crate::draw::Draw;
use crate::time::Timestamp;

/// When an edge last probed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ProbeClock {
    last: Option<Timestamp>,
}

/// The share of suppressed retries that are probed.
const SHARE_PERMILLE: u32 = 5;
/// At least one probe in this time, as long as retries are suppressed.
const INTERVAL: Duration = Duration::from_secs(10);

impl ProbeClock {
    /// Whether this suppressed retry is probed.
    pub(crate) fn is_due(self, draw: Draw, now: Timestamp) -> bool {
        let overdue = self.last.is_none_or(|last| now.saturating_since(last) >= INTERVAL);
        overdue || draw.takes_probe(SHARE_PERMILLE)
    }

    pub(crate) fn on_probe(&mut self, now: Timestamp) {
        self.last = Some(now);
    }
}
