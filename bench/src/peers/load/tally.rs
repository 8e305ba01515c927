//! What came of a load.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::call::Miss;

/// What came of a load.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Requests that were answered as they must.
    pub(crate) completed: u64,
    /// Requests that were not.
    pub(crate) failed: u64,
    /// What was wrong with the first of them.
    pub(crate) first_miss: Option<Miss>,
    latency_ns: Histogram<u64>,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let latency_ns = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        let latency_ns = latency_ns.expect("the bounds are sound");
        Self { completed: 0, failed: 0, first_miss: None, latency_ns }
    }

    /// A request has ended; `latency` is counted from when it was to be sent.
    pub(crate) fn add(&mut self, outcome: Result<(), Miss>, latency: Duration) {
        match outcome {
            Ok(()) => {
                self.completed += 1;
                let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
                self.latency_ns.saturating_record(ns);
            }
            Err(miss) => {
                self.failed += 1;
                self.first_miss.get_or_insert(miss);
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.first_miss = self.first_miss.take().or(other.first_miss);
        self.latency_ns += other.latency_ns;
    }

    /// The latency that this share of the requests did not exceed.
    pub(crate) fn quantile_us(&self, share: f64) -> f64 {
        self.latency_ns.value_at_quantile(share) as f64 / 1e3
    }
}

/// Who waits longer has waited this long.
const LONGEST_NS: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up_and_keep_the_first_miss() {
        let ms = Duration::from_millis;
        let (mut one, mut two) = (Tally::new(), Tally::new());
        one.add(Ok(()), ms(1));
        two.add(Err(Miss::Status(502)), ms(1));
        two.add(Err(Miss::Status(504)), ms(1));
        two.add(Ok(()), ms(9));
        one.merge(two);
        assert_eq!((one.completed, one.failed), (2, 2));
        assert_eq!(one.first_miss, Some(Miss::Status(502)));
        assert!((one.quantile_us(0.5) - 1_000.0).abs() < 2.0, "{}", one.quantile_us(0.5));
        assert!((one.quantile_us(0.99) - 9_000.0).abs() < 10.0, "{}", one.quantile_us(0.99));
    }
}
