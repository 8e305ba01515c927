//! How much of its remaining time a service hands to a callee (protocol §6).

use core::time::Duration;

const MARGIN_MIN: Duration = Duration::from_millis(2);
const MARGIN_MAX: Duration = Duration::from_millis(100);

/// What a callee may use of `remaining`: less a margin of 5 %, at least 2 ms and at most 100 ms,
/// so that the callee answers with a claim before its caller gives up. Zero if nothing is left.
#[must_use]
pub fn time_for_callee(remaining: Duration) -> Duration {
    let margin = (remaining / 20).clamp(MARGIN_MIN, MARGIN_MAX);
    remaining.saturating_sub(margin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_is_a_twentieth_within_its_limits() {
        // [deadline-3]
        for (remaining_us, callee_us) in [
            (0, 0),
            (1_000, 0),
            (2_000, 0),
            (10_000, 8_000),
            (40_000, 38_000),
            (100_000, 95_000),
            (1_000_000, 950_000),
            (2_000_000, 1_900_000),
            (60_000_000, 59_900_000),
        ] {
            let callee = time_for_callee(Duration::from_micros(remaining_us));
            assert_eq!(callee, Duration::from_micros(callee_us), "{remaining_us} us left");
        }
    }
}
