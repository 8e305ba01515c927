//! From values to places on paper.

/// An axis of values from zero, or from one in powers where they differ by much.
pub(super) struct Axis {
    logarithmic: bool,
    most: f64,
}

/// Values that differ by more than this are shown in powers.
const LINEAR_MAX: f64 = 20.0;

impl Axis {
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let most = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let least = values.fold(most, f64::min);
        // Below one there would be no bar; a load is never below it.
        Self { logarithmic: least >= 1.0 && most / least > LINEAR_MAX, most }
    }

    /// The share of the axis that a value takes.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.logarithmic { value.max(1.0).ln() / self.most.ln() } else { value / self.most }
    }

    /// Round values along the axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.logarithmic {
            let powers = (0..40).map(|power| f64::from(power).exp2());
            let step = (self.most.log2() / 8.0).ceil().max(1.0) as usize;
            return powers.step_by(step).take_while(|power| *power <= self.most).collect();
        }
        let magnitude = 10_f64.powf((self.most / 4.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
        let step = steps.into_iter().find(|step| self.most / step <= 6.0).unwrap_or(steps[3]);
        (0..8).map(|n| f64::from(n) * step).take_while(|tick| *tick <= self.most).collect()
    }
}

/// A value with as many digits as it needs.
pub(super) fn label(value: f64) -> String {
    let digits = if value.abs() >= 100.0 || value.fract() == 0.0 { 0 } else { 2 };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        for (values, ticks) in [
            (vec![1.0, 2.0], vec![0.0, 0.5, 1.0, 1.5, 2.0]),
            (vec![0.0, 300.0], vec![0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0]),
            (vec![1.0, 32.0], vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
        ] {
            let axis = Axis::of(values.iter().copied());
            assert_eq!(axis.ticks(), ticks, "{values:?}");
            assert_eq!(axis.share(values[1]), 1.0);
        }
    }

    #[test]
    fn powers_start_at_one() {
        let axis = Axis::of([1.0, 64.0].into_iter());
        assert_eq!((axis.share(1.0), axis.share(8.0)), (0.0, 0.5));
    }
}
