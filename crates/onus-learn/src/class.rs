//! From a ratio to a class: thresholds, proof and hysteresis.

use onus_core::EdgeClass;

use crate::wilson::{Z90, wilson};

/// What the counts alone say about an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeasuredClass {
    /// The callee's failure fails the caller.
    FailClose,
    /// The caller survives the callee's failure.
    FailOpen,
    /// Failures were seen, but they prove neither.
    Unknown,
    /// No failure was seen. Shown to people; for a decision the same as unknown, because an edge
    /// that never failed has not shown that its caller would survive.
    NoData,
}

impl MeasuredClass {
    /// The class that a decision may use.
    #[must_use]
    pub const fn edge_class(self) -> EdgeClass {
        match self {
            Self::FailClose => EdgeClass::FailClose,
            Self::FailOpen => EdgeClass::FailOpen,
            Self::Unknown | Self::NoData => EdgeClass::Unknown,
        }
    }

    /// The spelling in metrics, logs and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailClose => "fail-close",
            Self::FailOpen => "fail-open",
            Self::Unknown => "unknown",
            Self::NoData => "no-data",
        }
    }

    /// The class after new evidence: `k` of `n`, held as `self` so far.
    pub(crate) fn next(self, k: f64, n: f64) -> Self {
        match self {
            Self::FailOpen if k / n <= OPEN_LEAVE => Self::FailOpen,
            Self::FailClose if k / n >= CLOSE_LEAVE => Self::FailClose,
            Self::FailOpen | Self::FailClose | Self::Unknown | Self::NoData => Self::proven(k, n),
        }
    }

    /// The class that `k` of `n` prove on their own.
    pub(crate) fn proven(k: f64, n: f64) -> Self {
        if n < MIN_SAMPLE {
            return if n > 0.0 { Self::Unknown } else { Self::NoData };
        }
        let ratio = k / n;
        let (low, high) = wilson(k, n, Z90);
        if ratio <= OPEN_RATIO && high < OPEN_BOUND {
            Self::FailOpen
        } else if ratio >= CLOSE_RATIO && low > CLOSE_BOUND {
            Self::FailClose
        } else {
            Self::Unknown
        }
    }
}

/// The class by ratio alone, for counts that are all there is: traces, a closed incident.
///
/// `both` of `failures` failures of the callee were failures of the caller too. There is no proof
/// in it: two failures are enough for a verdict. Decisions use an [`Estimator`](crate::Estimator).
#[must_use]
pub fn raw_class(both: u64, failures: u64) -> MeasuredClass {
    if failures == 0 {
        return MeasuredClass::NoData;
    }
    // Whole numbers, so that four of five are 80 % at any size.
    let (both, failures) = (u128::from(both), u128::from(failures));
    if both * 5 >= failures * 4 {
        MeasuredClass::FailClose
    } else if both * 5 <= failures {
        MeasuredClass::FailOpen
    } else {
        MeasuredClass::Unknown
    }
}

/// The same with nothing on the border: as analyses of traces draw it, exactly a fifth and exactly
/// four fifths are no class.
#[must_use]
pub fn strict_class(both: u64, failures: u64) -> MeasuredClass {
    let (fifths, all) = (u128::from(both) * 5, u128::from(failures));
    let on_border = failures > 0 && (fifths == all || fifths == all * 4);
    if on_border { MeasuredClass::Unknown } else { raw_class(both, failures) }
}

/// With fewer isolated failures an edge stays unknown.
pub(crate) const MIN_SAMPLE: f64 = 10.0;

/// Fail-open is entered at this ratio or less …
pub(crate) const OPEN_RATIO: f64 = 0.2;
/// … if the upper bound is below this …
pub(crate) const OPEN_BOUND: f64 = 0.3;
/// … and left above this, so that a ratio on the border does not flip with every failure.
pub(crate) const OPEN_LEAVE: f64 = 0.35;

/// Fail-close is entered at this ratio or more …
pub(crate) const CLOSE_RATIO: f64 = 0.8;
/// … if the lower bound is above this …
pub(crate) const CLOSE_BOUND: f64 = 0.7;
/// … and left below this.
pub(crate) const CLOSE_LEAVE: f64 = 0.65;

#[cfg(test)]
mod tests {
    use MeasuredClass::{FailClose, FailOpen, NoData, Unknown};

    use super::*;

    #[test]
    fn is_proven_by_ratio_sample_and_interval() {
        // [class-3] [class-4] [class-5]
        for (k, n, expected) in [
            (0.0, 0.0, NoData),
            (0.0, 1.0, Unknown),
            // The interval of nine clean failures would do; the sample does not.
            (0.0, 9.0, Unknown),
            (9.0, 9.0, Unknown),
            (0.0, 10.0, FailOpen),
            (10.0, 10.0, FailClose),
            // Ten per cent, but up to 35 % are possible.
            (1.0, 10.0, Unknown),
            (9.0, 10.0, Unknown),
            (2.0, 20.0, FailOpen),
            (18.0, 20.0, FailClose),
            // Exactly on the ratio: the interval decides.
            (4.0, 20.0, Unknown),
            (16.0, 20.0, Unknown),
            (20.0, 100.0, FailOpen),
            (80.0, 100.0, FailClose),
            // The interval would do; the ratio does not.
            (20.1, 100.0, Unknown),
            (79.9, 100.0, Unknown),
            (50.0, 100.0, Unknown),
        ] {
            assert_eq!(MeasuredClass::proven(k, n), expected, "{k} of {n}");
        }
    }

    #[test]
    fn is_left_later_than_it_was_entered() {
        // [class-3] [class-4]
        for (held, k, expected) in [
            (FailOpen, 20.0, FailOpen),
            (FailOpen, 30.0, FailOpen),
            (FailOpen, 35.0, FailOpen),
            (FailOpen, 35.1, Unknown),
            (FailOpen, 79.0, Unknown),
            (FailOpen, 80.0, FailClose),
            (FailClose, 80.0, FailClose),
            (FailClose, 70.0, FailClose),
            (FailClose, 65.0, FailClose),
            (FailClose, 64.9, Unknown),
            (FailClose, 21.0, Unknown),
            (FailClose, 20.0, FailOpen),
            (Unknown, 30.0, Unknown),
            (Unknown, 20.0, FailOpen),
            (Unknown, 70.0, Unknown),
            (Unknown, 80.0, FailClose),
            (NoData, 0.0, FailOpen),
        ] {
            assert_eq!(held.next(k, 100.0), expected, "{held:?} at {k} of 100");
        }
    }

    #[test]
    fn raw_classes_are_the_articles_thresholds() {
        for (both, failures, expected) in [
            (0, 0, NoData),
            (0, 1, FailOpen),
            (1, 1, FailClose),
            (1, 5, FailOpen),
            (4, 5, FailClose),
            (2, 5, Unknown),
            (201, 1_000, Unknown),
            (799, 1_000, Unknown),
            (u64::MAX, u64::MAX, FailClose),
            (0, u64::MAX, FailOpen),
            (u64::MAX / 2, u64::MAX, Unknown),
        ] {
            assert_eq!(raw_class(both, failures), expected, "{both} of {failures}");
        }
    }

    #[test]
    fn a_strict_class_has_nothing_on_the_border() {
        for (both, failures, expected) in [
            (0, 0, NoData),
            (0, 1, FailOpen),
            (1, 1, FailClose),
            (2, 10, Unknown),
            (199, 1_000, FailOpen),
            (8, 10, Unknown),
            (801, 1_000, FailClose),
            (1, 2, Unknown),
            (u64::MAX, u64::MAX, FailClose),
        ] {
            assert_eq!(strict_class(both, failures), expected, "{both} of {failures}");
        }
    }

    #[test]
    fn only_proven_fail_open_is_exempt_from_blame() {
        // [class-5]
        for (measured, class) in [
            (FailClose, EdgeClass::FailClose),
            (FailOpen, EdgeClass::FailOpen),
            (Unknown, EdgeClass::Unknown),
            (NoData, EdgeClass::Unknown),
        ] {
            assert_eq!(measured.edge_class(), class);
        }
    }
}
