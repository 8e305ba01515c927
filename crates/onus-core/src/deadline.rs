//! How much of its remaining time a service hands to a callee (protocol §6).

use core::time::Duration;

const MARGIN_MIN: Duration = Duration::from_millis(2);
const MARGIN_MAX: Duration = Duration::from_millis(100);

/// What a callee may use of `remaining`: less a margin of 5 %, at least 2 ms and at most 100 ms,
/// so that the callee answers with a claim before its caller gives up. Zero if nothing is left.
#[must_use]
pub fn time_for_callee(remaining: Duration) -> Duration {
    remaining.saturating_sub(margin(remaining))
}

/// How long a transport may go on that gives up an attempt by itself: a margin longer than its
/// caller listens, so that the attempt ends by its caller's clock.
#[must_use]
pub fn time_for_transport(remaining: Duration) -> Duration {
    remaining.saturating_add(margin(remaining))
}

fn margin(remaining: Duration) -> Duration {
    (remaining / 20).clamp(MARGIN_MIN, MARGIN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_is_a_twentieth_within_its_limits() {
        // [deadline-3] [deadline-8]
        for (remaining_us, callee_us, transport_us) in [
            (0, 0, 2_000),
            (1_000, 0, 3_000),
            (2_000, 0, 4_000),
            (10_000, 8_000, 12_000),
            (40_000, 38_000, 42_000),
            (100_000, 95_000, 105_000),
            (1_000_000, 950_000, 1_050_000),
            (2_000_000, 1_900_000, 2_100_000),
            (60_000_000, 59_900_000, 60_100_000),
        ] {
            let remaining = Duration::from_micros(remaining_us);
            let callee = time_for_callee(remaining);
            assert_eq!(callee, Duration::from_micros(callee_us), "{remaining_us} us left");
            let transport = time_for_transport(remaining);
            assert_eq!(transport, Duration::from_micros(transport_us), "{remaining_us} us left");
        }
        assert_eq!(time_for_transport(Duration::MAX), Duration::MAX);
    }
}
