//! A mean over runs, and how far it may be off.

/// A mean over runs with half the width of its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval; zero for a single run, which says nothing of its spread.
    pub half_width: f64,
    /// The runs.
    pub runs: usize,
}

/// The 97.5 % quantile of Student's t for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Beyond 30 degrees, within 0.005 of the quantile.
fn quantile(degrees: usize) -> f64 {
    match degrees.checked_sub(1).map(|index| QUANTILES.get(index)) {
        Some(Some(quantile)) => *quantile,
        Some(None) => 1.96 + 2.5 / degrees as f64,
        None => 0.0,
    }
}

impl Estimate {
    /// The estimate from the values of runs; `None` without any.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = values.len();
        if runs == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / runs as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let half_width = match runs {
            1 => 0.0,
            runs => {
                let deviation = (squares / (runs - 1) as f64).sqrt();
                quantile(runs - 1) * deviation / (runs as f64).sqrt()
            }
        };
        Some(Self { mean, half_width, runs })
    }

    /// Whether the interval holds this value, or the rounding of the mean does.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        (self.mean - value).abs() <= self.half_width + 1e-9 * value.abs().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        for (values, mean, half_width) in [
            (vec![3.0], 3.0, 0.0),
            (vec![1.0, 3.0], 2.0, 12.706),
            (vec![2.0; 40], 2.0, 0.0),
            // Deviation 1, t = 2.776, root of 5.
            (vec![1.0, 2.0, 3.0, 2.0, 2.0], 2.0, 2.776 * 0.5_f64.sqrt() / 5.0_f64.sqrt()),
        ] {
            let estimate = Estimate::of(&values).unwrap();
            assert!((estimate.mean - mean).abs() < 1e-12, "{values:?}");
            assert!((estimate.half_width - half_width).abs() < 1e-9, "{values:?} {estimate:?}");
        }
        assert_eq!(Estimate::of(&[]), None);
        assert!((quantile(60) - 2.000).abs() < 0.005 && (quantile(1000) - 1.962).abs() < 0.005);
    }
}
