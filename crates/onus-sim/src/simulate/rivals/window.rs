//! Counts of the last ten seconds.

use onus_core::Timestamp;

const SLOTS: usize = 10;

/// A sliding window of ten seconds in steps of one.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    counts: [u64; SLOTS],
    second: u64,
    sum: u64,
}

impl Window {
    pub(super) fn add(&mut self, now: Timestamp) {
        self.advance(now);
        self.counts[(self.second % SLOTS as u64) as usize] += 1;
        self.sum += 1;
    }

    pub(super) fn sum(&mut self, now: Timestamp) -> u64 {
        self.advance(now);
        self.sum
    }

    fn advance(&mut self, now: Timestamp) {
        let second = now.as_nanos() / 1_000_000_000;
        let steps = (second - self.second).min(SLOTS as u64);
        for step in 1..=steps {
            let slot = ((second - steps + step) % SLOTS as u64) as usize;
            self.sum -= std::mem::take(&mut self.counts[slot]);
        }
        self.second = second;
    }
}
