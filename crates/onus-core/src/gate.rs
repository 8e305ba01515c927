//! The efficacy gate: where retries on an edge stop helping, fewer of them are made.

use crate::draw::Draw;

/// The share of an edge's retries that succeed, exponentially averaged (a = 0.02), in permille.
///
/// A retry passes with probability clamp((share − 0.1) / 0.3, 0.02, 1); the floor lets the gate
/// see a recovery (protocol §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gate {
    efficacy_permille: i32,
}

/// Averages over about this many retries: 1 / a.
const MEMORY: i32 = 50;

impl Gate {
    /// A gate that has seen no retry: open.
    #[must_use]
    pub const fn new() -> Self {
        Self { efficacy_permille: 1000 }
    }

    /// Takes in whether a retry succeeded.
    pub fn record(&mut self, succeeded: bool) {
        let target = if succeeded { 1000 } else { 0 };
        let distance = target - self.efficacy_permille;
        // Rounded half away from zero: truncation would stop a long way from both ends.
        let half = MEMORY / 2 * distance.signum();
        self.efficacy_permille += (distance + half) / MEMORY;
    }

    /// The share of retries that succeed, in permille.
    #[must_use]
    pub const fn efficacy_permille(&self) -> u32 {
        self.efficacy_permille.unsigned_abs()
    }

    /// The probability, in permille, that a retry passes.
    #[must_use]
    pub fn allowed_permille(&self) -> u32 {
        let above = self.efficacy_permille().saturating_sub(100);
        (above * 1000 / 300).clamp(20, 1000)
    }

    pub(crate) fn is_open(&self, draw: Draw) -> bool {
        draw.passes_gate(self.allowed_permille())
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_and_closes_with_the_share_of_successes() {
        // [gate-1] [gate-2]
        for (efficacy_permille, allowed) in
            [(1000, 1000), (400, 1000), (399, 996), (250, 500), (106, 20), (100, 20), (0, 20)]
        {
            assert_eq!(Gate { efficacy_permille }.allowed_permille(), allowed);
        }
    }

    #[test]
    fn closes_in_an_outage_and_opens_again_after_it() {
        let mut gate = Gate::new();
        let mut failures = 0;
        while gate.allowed_permille() > 20 {
            gate.record(false);
            failures += 1;
        }
        // 0.98^n falls below 0.106 at n = 112.
        assert!((105..=120).contains(&failures), "{failures} failures");
        for _ in 0..40 {
            gate.record(true);
        }
        assert_eq!(gate.allowed_permille(), 1000);
    }

    #[test]
    fn averages_the_share_without_bias() {
        for share in [1, 3, 5, 7, 9] {
            let mut gate = Gate::new();
            for i in 0..5000 {
                gate.record(i % 10 < share);
            }
            let off = gate.efficacy_permille().abs_diff(share * 100);
            assert!(off < 100, "share {share}0 %: {} permille", gate.efficacy_permille());
        }
    }

    #[test]
    fn the_draw_decides_at_a_narrow_gate() {
        let gate = Gate { efficacy_permille: 250 };
        assert!(gate.is_open(Draw::from_bits(0x7fff)));
        assert!(!gate.is_open(Draw::from_bits(0x8000)));
        let closed = Gate { efficacy_permille: 0 };
        assert!(closed.is_open(Draw::from_bits(0)), "the floor lets 2 % pass");
        assert!(!closed.is_open(Draw::from_bits(0xffff)));
    }
}
