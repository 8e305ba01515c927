//! How long after the outage the answers are good again.

use super::tally::SecondTally;

/// How many seconds in a row have to be good, and which share of their requests.
const GOOD_SECONDS: usize = 5;
const GOOD_SHARE: f64 = 0.95;

/// Seconds from the end of the outage to the first of five in a row of which 95 % of the requests
/// were answered without an error; `None` if that never was.
pub(super) fn recovery(seconds: &[SecondTally], outage_ends: u64) -> Option<f64> {
    let end = outage_ends.div_ceil(1_000_000_000) as usize;
    let good = |second: &SecondTally| {
        second.arrivals > 0 && second.ok as f64 >= GOOD_SHARE * second.arrivals as f64
    };
    let after = seconds.get(end..)?;
    let first = after.windows(GOOD_SECONDS).position(|seconds| seconds.iter().all(good))?;
    Some(first as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_five_good_seconds() {
        let seconds = |text: &str| -> Vec<_> {
            let second = |c| match c {
                '+' => (100, 95),
                '-' => (100, 94),
                _ => (0, 0),
            };
            let tally = |(arrivals, ok)| SecondTally { arrivals, ok, ..SecondTally::default() };
            text.chars().map(second).map(tally).collect()
        };
        for (text, expected) in [
            ("--+++++", Some(0.0)),
            ("---+++++", Some(1.0)),
            ("--++++-+++++", Some(5.0)),
            ("--++++-++++", None),
            ("-", None),
            // Nobody comes any more.
            ("-------.....", None),
        ] {
            assert_eq!(recovery(&seconds(text), 1_500_000_000), expected, "{text}");
        }
    }
}
