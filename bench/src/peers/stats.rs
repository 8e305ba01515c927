//! Figures of several rounds as one.

use serde::Serialize;

/// The middle of some figures, and how far they reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` of no figures at all.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max })
    }
}

/// The ratios of pairs of the same round: what disturbs a round disturbs both. A round that lacks
/// one of the two says nothing.
pub(crate) fn ratios(
    rounds: impl IntoIterator<Item = (Option<f64>, Option<f64>)>,
) -> Option<Spread> {
    let pairs = rounds.into_iter().filter_map(|(of, against)| Some((of?, against?)));
    Spread::of(pairs.filter(|(_, against)| *against > 0.0).map(|(of, against)| of / against))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_figures() {
        fn check(figures: &[f64], expected: Option<(f64, f64, f64)>) {
            let spread = Spread::of(figures.iter().copied());
            let got = spread.map(|spread| (spread.median, spread.min, spread.max));
            assert_eq!(got, expected, "{figures:?}");
        }
        check(&[], None);
        check(&[2.0], Some((2.0, 2.0, 2.0)));
        check(&[3.0, 1.0], Some((2.0, 1.0, 3.0)));
        check(&[10.0, 9.0, 2.0], Some((9.0, 2.0, 10.0)));
        check(&[4.0, 100.0, 1.0, 2.0], Some((3.0, 1.0, 100.0)));
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let spread = |rounds: &[(Option<f64>, Option<f64>)]| ratios(rounds.iter().copied());
        // A round twice as slow for both changes nothing; the ratio of medians would be 0.6.
        let slow = [(Some(1.0), Some(2.0)), (Some(3.0), Some(5.0)), (Some(10.0), Some(20.0))];
        let expected = Some(Spread { median: 0.5, min: 0.5, max: 0.6 });
        assert_eq!(spread(&slow), expected);
        assert_eq!(spread(&[(Some(1.0), None), (None, Some(1.0))]), None);
        assert_eq!(spread(&[(Some(1.0), Some(0.0))]), None);
    }
}
