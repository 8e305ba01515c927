//! What is known about an edge at one moment, and the rule that makes a class of it.

use std::time::Duration;

use crate::class::{CLOSE_RATIO, MIN_SAMPLE, MeasuredClass, OPEN_RATIO};
use crate::wilson::{Z90, wilson};

/// A measured class with its evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The class.
    pub class: MeasuredClass,
    /// Isolated failures remembered that were failures of the caller too; fractional, because old
    /// evidence is scaled down.
    pub k: f64,
    /// Isolated failures remembered.
    pub n: f64,
    /// How long the class has been held.
    pub held: Duration,
}

impl Measurement {
    /// k / n: the estimate of P(caller failed | callee failed). None without isolated failures.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        (self.n > 0.0).then(|| self.k / self.n)
    }

    /// The two-sided 90 % interval of the ratio; (0, 1) without isolated failures.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        wilson(self.k, self.n, Z90)
    }

    /// The rule that the class follows from.
    #[must_use]
    pub fn rule(&self) -> Rule {
        match self.class {
            MeasuredClass::NoData => Rule::NoFailures,
            MeasuredClass::Unknown => self.rule_for_unknown(),
            MeasuredClass::FailOpen | MeasuredClass::FailClose => {
                if MeasuredClass::proven(self.k, self.n) == self.class {
                    Rule::Proven
                } else {
                    Rule::Held
                }
            }
        }
    }

    fn rule_for_unknown(&self) -> Rule {
        match self.ratio() {
            None => Rule::NoneUsable,
            Some(_) if self.n < MIN_SAMPLE => Rule::TooFew,
            Some(ratio) if ratio > OPEN_RATIO && ratio < CLOSE_RATIO => Rule::Between,
            Some(_) => Rule::IntervalTooWide,
        }
    }
}

/// Why a measured class is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// No-data: the callee has failed in no finished minute.
    NoFailures,
    /// Unknown: the callee failed, but never alone in a minute in which learning was not frozen.
    NoneUsable,
    /// Unknown: fewer than 10 isolated failures.
    TooFew,
    /// Unknown: the ratio is between the thresholds.
    Between,
    /// Unknown: the ratio is past a threshold, the bound of its interval is not.
    IntervalTooWide,
    /// Fail-open or fail-close: ratio, sample and bound are past the threshold.
    Proven,
    /// Fail-open or fail-close: proven earlier, and the ratio has not passed the threshold for
    /// leaving.
    Held,
}

impl Rule {
    /// The spelling in metrics, logs and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoFailures => "no-failures",
            Self::NoneUsable => "none-usable",
            Self::TooFew => "too-few",
            Self::Between => "between",
            Self::IntervalTooWide => "interval-too-wide",
            Self::Proven => "proven",
            Self::Held => "held",
        }
    }
}

#[cfg(test)]
mod tests {
    use MeasuredClass::{FailClose, FailOpen, NoData, Unknown};

    use super::*;

    #[test]
    fn every_class_has_its_rule() {
        for (class, k, n, expected) in [
            (NoData, 0.0, 0.0, Rule::NoFailures),
            (Unknown, 0.0, 0.0, Rule::NoneUsable),
            (Unknown, 0.0, 9.0, Rule::TooFew),
            (Unknown, 9.0, 9.0, Rule::TooFew),
            (Unknown, 5.0, 10.0, Rule::Between),
            (Unknown, 21.0, 100.0, Rule::Between),
            (Unknown, 79.0, 100.0, Rule::Between),
            (Unknown, 1.0, 10.0, Rule::IntervalTooWide),
            (Unknown, 9.0, 10.0, Rule::IntervalTooWide),
            (FailOpen, 0.0, 10.0, Rule::Proven),
            (FailOpen, 30.0, 100.0, Rule::Held),
            (FailClose, 10.0, 10.0, Rule::Proven),
            (FailClose, 70.0, 100.0, Rule::Held),
        ] {
            let measurement = Measurement { class, k, n, held: Duration::ZERO };
            assert_eq!(measurement.rule(), expected, "{class:?}, {k} of {n}");
        }
    }

    #[test]
    fn has_no_ratio_without_samples() {
        let at = |k, n| Measurement { class: Unknown, k, n, held: Duration::ZERO };
        assert_eq!(at(0.0, 0.0).ratio(), None);
        assert_eq!(at(0.0, 0.0).interval(), (0.0, 1.0));
        assert_eq!(at(5.0, 20.0).ratio(), Some(0.25));
    }
}
