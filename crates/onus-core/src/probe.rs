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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_once_per_interval_or_by_the_draw() {
        // [probe-3]; the probe's bits are the second 16.
        let at = Timestamp::from_nanos;
        let drawn = |bits: u64| Draw::from_bits(bits << 16);
        let second = 1_000_000_000;
        let mut clock = ProbeClock::default();
        assert!(clock.is_due(drawn(0xffff), at(0)), "an edge that has never probed");
        clock.on_probe(at(5 * second));
        for (bits, nanos, due) in [
            (0xffff, 5 * second, false),
            (0xffff, 15 * second - 1, false),
            (0xffff, 15 * second, true),
            // 5 permille of 65,536 are 327.68.
            (327, 6 * second, true),
            (328, 6 * second, false),
            (0xffff, 0, false),
        ] {
            assert_eq!(clock.is_due(drawn(bits), at(nanos)), due, "{bits} at {nanos}");
        }
    }
}
