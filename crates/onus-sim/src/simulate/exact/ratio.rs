//! Fractions of whole numbers.

use std::fmt;

/// A fraction in lowest terms, not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u128,
    denominator: u128,
}

impl Ratio {
    pub(super) const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// This many of so many; `None` of none.
    pub(super) fn new(numerator: u128, denominator: u128) -> Option<Self> {
        let (mut a, mut b) = (numerator, denominator);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        (denominator > 0).then(|| Self { numerator: numerator / a, denominator: denominator / a })
    }

    /// A probability as a scenario writes it, to nine digits.
    pub(super) fn of_probability(probability: f64) -> Option<Self> {
        const DIGITS: u128 = 1_000_000_000;
        Self::new((probability * DIGITS as f64).round() as u128, DIGITS)
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        let numerator = self.numerator.checked_mul(other.numerator)?;
        Self::new(numerator, self.denominator.checked_mul(other.denominator)?)
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Self::new(left.checked_add(right)?, self.denominator.checked_mul(other.denominator)?)
    }

    /// `None` below zero.
    pub(super) fn minus(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Self::new(left.checked_sub(right)?, self.denominator.checked_mul(other.denominator)?)
    }

    /// The difference to one of a ratio that is at most one.
    pub(super) fn rest(self) -> Option<Self> {
        Self::ONE.minus(self)
    }

    pub(super) fn least(self, other: Self) -> Self {
        if self.value() <= other.value() { self } else { other }
    }

    /// The nearest number.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Whether it is a whole number.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.denominator == 1
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { numerator, denominator } = self;
        if self.is_whole() {
            write!(f, "{numerator}")
        } else {
            write!(f, "{numerator}/{denominator}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_in_lowest_terms() {
        let ratio = |a, b| Ratio::new(a, b).unwrap();
        for (found, shown) in [
            (Ratio::new(4, 6), "2/3"),
            (Ratio::new(0, 6), "0"),
            (ratio(1, 2).plus(ratio(1, 3)), "5/6"),
            (ratio(11, 10).times(ratio(11, 10)), "121/100"),
            (ratio(3, 10).rest(), "7/10"),
            (Some(ratio(3, 10).least(ratio(1, 10))), "1/10"),
            (Ratio::of_probability(0.001), "1/1000"),
        ] {
            assert_eq!(found.map(|ratio| ratio.to_string()).as_deref(), Some(shown));
        }
        assert_eq!(Ratio::new(1, 0), None);
        assert_eq!(ratio(3, 2).rest(), None);
        assert_eq!(ratio(u128::MAX, 1).times(ratio(2, 1)), None);
    }
}
