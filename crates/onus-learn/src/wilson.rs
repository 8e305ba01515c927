//! The Wilson score interval: how far a ratio of few samples may be from the truth.

/// The normal quantile of a two-sided 90 % interval.
pub const Z90: f64 = 1.645;

/// The interval `(low, high)` that the true ratio lies in, given `k` of `n`.
///
/// It is inside [0, 1], contains k / n, and is not empty-handed at k = 0 and k = n, where the
/// textbook interval has no width. Both arguments may be fractional, as aged evidence is. Without
/// samples (or with a number that is none) the ratio may be anything: (0, 1).
#[must_use]
pub fn wilson(k: f64, n: f64, z: f64) -> (f64, f64) {
    if k.is_nan() || z.is_nan() || !n.is_finite() || n <= 0.0 {
        return (0.0, 1.0);
    }
    let ratio = k.clamp(0.0, n) / n;
    let square = z * z;
    let scale = 1.0 + square / n;
    let centre = (ratio + square / (2.0 * n)) / scale;
    let variance = ratio * (1.0 - ratio) / n + square / (4.0 * n * n);
    let half = z.abs() * variance.sqrt() / scale;
    // Rounding may put a bound a hair beyond the ratio or the unit interval.
    ((centre - half).clamp(0.0, ratio), (centre + half).clamp(ratio, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use statrs::distribution::{Binomial, ContinuousCDF, Discrete, Normal};

    use super::*;

    #[test]
    fn agrees_with_published_intervals() {
        // Newcombe (1998), table I, method 3, 95 %; then k = 0 and k = n, where the bounds are
        // z² / (n + z²) and n / (n + z²).
        let z95 = 1.959_964;
        for (k, n, z, low, high) in [
            (81.0, 263.0, z95, 0.2553, 0.3662),
            (15.0, 148.0, z95, 0.0624, 0.1605),
            (0.0, 20.0, z95, 0.0, 0.1611),
            (1.0, 29.0, z95, 0.0061, 0.1718),
            (0.0, 10.0, Z90, 0.0, 0.2130),
            (10.0, 10.0, Z90, 0.7870, 1.0),
            (0.0, 9.0, Z90, 0.0, 0.2312),
        ] {
            let (l, h) = wilson(k, n, z);
            assert!((l - low).abs() < 5e-5, "{k} of {n}: low {l}, expected {low}");
            assert!((h - high).abs() < 5e-5, "{k} of {n}: high {h}, expected {high}");
        }
    }

    #[test]
    fn z90_leaves_five_per_cent_on_each_side() {
        let normal = Normal::new(0.0, 1.0).expect("the standard normal distribution");
        assert!((normal.cdf(Z90) - 0.95).abs() < 1e-4);
    }

    #[test]
    fn covers_the_truth_nine_times_out_of_ten() {
        // The chance that the interval of a binomial draw contains the true ratio, exactly.
        let mut mean = 0.0;
        let mut cells = 0.0;
        for n in [10_u64, 25, 50, 100] {
            for percent in 1..100_u32 {
                let truth = f64::from(percent) / 100.0;
                let binomial = Binomial::new(truth, n).expect("a ratio inside [0, 1]");
                let covered: f64 = (0..=n)
                    .filter(|&k| {
                        let (low, high) = wilson(k as f64, n as f64, Z90);
                        low <= truth && truth <= high
                    })
                    .map(|k| binomial.pmf(k))
                    .sum();
                assert!(covered > 0.78, "{percent} %, n = {n}: covered {covered}");
                mean += covered;
                cells += 1.0;
            }
        }
        let mean = mean / cells;
        assert!((0.89..0.92).contains(&mean), "mean coverage {mean}");
    }

    #[test]
    fn knows_nothing_without_samples() {
        for (k, n) in [(0.0, 0.0), (3.0, 0.0), (1.0, -4.0), (f64::NAN, 9.0), (1.0, f64::NAN)] {
            assert_eq!(wilson(k, n, Z90), (0.0, 1.0), "{k} of {n}");
        }
    }

    fn samples() -> impl Strategy<Value = (f64, f64)> {
        (0.5..1000.0_f64, 0.0..=1.0_f64).prop_map(|(n, ratio)| (ratio * n, n))
    }

    proptest! {
        #[test]
        fn bounds_are_where_the_truth_would_be_z_deviations_off((k, n) in samples()) {
            // The definition that the closed form solves: |k/n − p| = z · sqrt(p(1 − p)/n).
            let (low, high) = wilson(k, n, Z90);
            for bound in [low, high] {
                let deviation = (bound * (1.0 - bound) / n).sqrt();
                prop_assert!(((k / n - bound).abs() - Z90 * deviation).abs() < 1e-6);
            }
        }

        #[test]
        fn stays_in_the_unit_interval_and_contains_the_ratio((k, n) in samples()) {
            let (low, high) = wilson(k, n, Z90);
            let ratio = k / n;
            prop_assert!(0.0 <= low && low <= ratio && ratio <= high && high <= 1.0);
            prop_assert!(low < high);
        }

        #[test]
        fn rises_with_k((k, n) in samples(), more in 0.0..1.0_f64) {
            let (low, high) = wilson(k, n, Z90);
            let (low2, high2) = wilson(k + more * (n - k), n, Z90);
            prop_assert!(low2 >= low - 1e-12 && high2 >= high - 1e-12);
        }

        #[test]
        fn narrows_with_n((k, n) in samples(), times in 1.01..50.0_f64) {
            let (low, high) = wilson(k, n, Z90);
            let (low2, high2) = wilson(k * times, n * times, Z90);
            prop_assert!(high2 - low2 < high - low);
        }

        #[test]
        fn is_symmetric((k, n) in samples()) {
            let (low, high) = wilson(k, n, Z90);
            let (low2, high2) = wilson(n - k, n, Z90);
            prop_assert!((low - (1.0 - high2)).abs() < 1e-9 && (high - (1.0 - low2)).abs() < 1e-9);
        }
    }
}
