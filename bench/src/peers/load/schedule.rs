//! When requests are to be sent: at a constant rate, independent of each other.

use std::time::Duration;

/// The times from the start at which requests are to be sent, as independent clients send them
/// (a Poisson process). The same seed gives the same times.
pub(crate) fn poisson(seed: u64, rate: f64, time: Duration) -> impl Iterator<Item = Duration> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut at = 0.0;
    std::iter::from_fn(move || {
        // 1 - f64() is in (0, 1], so the logarithm is finite.
        at -= (1.0 - random.f64()).ln() / rate;
        (at < time.as_secs_f64()).then(|| Duration::from_secs_f64(at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_times_and_the_rate_is_kept() {
        let times = |seed| poisson(seed, 2_000.0, Duration::from_secs(10)).collect::<Vec<_>>();
        let one = times(1);
        assert_eq!(one, times(1));
        assert_ne!(one, times(2));
        assert!(one.is_sorted());
        // Five standard deviations of a count of 20,000.
        assert!((19_293..=20_707).contains(&one.len()), "{}", one.len());
    }

    #[test]
    fn arrivals_are_independent() {
        let times: Vec<_> = poisson(7, 1_000.0, Duration::from_secs(20)).collect();
        let gaps: Vec<_> = times.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Of exponential gaps the deviation is the mean; of even gaps it is 0.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{}", variance.sqrt() / mean);
    }
}
