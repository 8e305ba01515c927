//! Every class in words: what, by whom, from which evidence, by which rule, since when.

use std::fmt;
use std::time::Duration;

use crate::authority::{Annotation, Authority, ClassFinding, Contradiction};
use crate::class::{
    CLOSE_BOUND, CLOSE_LEAVE, CLOSE_RATIO, MIN_SAMPLE, MeasuredClass, OPEN_BOUND, OPEN_LEAVE,
    OPEN_RATIO,
};
use crate::measurement::{Measurement, Rule};

impl fmt::Display for ClassFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class.as_str();
        match self.by {
            Authority::Operator | Authority::Annotation => {
                write!(f, "{class}, declared by {}; measured {}", declarer(self.by), self.measured)
            }
            Authority::Learned => write!(f, "{}", self.measured),
            Authority::Nobody => write!(f, "{}; blamed as if fail-close", self.measured),
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "declared fail-open by {}, measured {}; while this stands its failures are retried at \
             more than one level",
            declarer(self.by),
            self.measured
        )
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}: ", self.class, Age(self.held))?;
        let rule = self.rule();
        let Some(ratio) = self.ratio() else {
            return match rule {
                Rule::NoFailures => write!(f, "the callee has failed in no finished minute"),
                Rule::NoneUsable
                | Rule::TooFew
                | Rule::Between
                | Rule::IntervalTooWide
                | Rule::Proven
                | Rule::Held => write!(f, "the callee has failed, but no failure was usable"),
            };
        };
        let (low, high) = self.interval();
        write!(
            f,
            "the caller failed in {} of {} isolated failures of the callee ({}, 90 % interval {} \
             to {}); ",
            Weight(self.k),
            Weight(self.n),
            Percent(ratio),
            Percent(low),
            Percent(high)
        )?;
        self.explain(rule, f)
    }
}

impl Measurement {
    fn explain(&self, rule: Rule, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.class == MeasuredClass::FailOpen;
        match rule {
            Rule::NoFailures | Rule::NoneUsable | Rule::TooFew => {
                write!(f, "fewer than {MIN_SAMPLE} prove nothing")
            }
            Rule::Between => write!(
                f,
                "a ratio between {} and {} proves neither",
                Percent(OPEN_RATIO),
                Percent(CLOSE_RATIO)
            ),
            Rule::IntervalTooWide => write!(
                f,
                "too few for proof: the interval must end below {} or begin above {}",
                Percent(OPEN_BOUND),
                Percent(CLOSE_BOUND)
            ),
            Rule::Proven if open => write!(
                f,
                "proven by a ratio up to {} and an interval below {}",
                Percent(OPEN_RATIO),
                Percent(OPEN_BOUND)
            ),
            Rule::Proven => write!(
                f,
                "proven by a ratio from {} and an interval above {}",
                Percent(CLOSE_RATIO),
                Percent(CLOSE_BOUND)
            ),
            Rule::Held if open => {
                write!(f, "proven earlier and held up to {}", Percent(OPEN_LEAVE))
            }
            Rule::Held => write!(f, "proven earlier and held down to {}", Percent(CLOSE_LEAVE)),
        }
    }
}

impl fmt::Display for MeasuredClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const fn declarer(by: Authority) -> &'static str {
    match by {
        Authority::Operator => "the operator",
        Authority::Annotation => "the caller's code",
        Authority::Learned | Authority::Nobody => "nobody",
    }
}

/// A ratio in whole per cent.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.0 * 100.0)
    }
}

/// An amount of evidence: whole, or with one decimal where old evidence was scaled down.
struct Weight(f64);

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.0.round() {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.1}", self.0)
        }
    }
}

/// A duration in its largest fitting unit, rounded down.
struct Age(Duration);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (amount, unit) = match seconds {
            0..120 => (seconds, "s"),
            120..7_200 => (seconds / 60, "min"),
            7_200..172_800 => (seconds / 3_600, "h"),
            172_800.. => (seconds / 86_400, "days"),
        };
        write!(f, "{amount} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use onus_core::EdgeClass;

    use super::*;

    fn measured(class: MeasuredClass, k: f64, n: f64, seconds: u64) -> Measurement {
        Measurement { class, k, n, held: Duration::from_secs(seconds) }
    }

    #[test]
    fn explains_every_measured_class() {
        // [class-11]
        use MeasuredClass::{FailClose, FailOpen, NoData, Unknown};
        for (measurement, expected) in [
            (
                measured(NoData, 0.0, 0.0, 59),
                "no-data for 59 s: the callee has failed in no finished minute",
            ),
            (
                measured(Unknown, 0.0, 0.0, 120),
                "unknown for 2 min: the callee has failed, but no failure was usable",
            ),
            (
                measured(Unknown, 9.0, 9.0, 7_199),
                "unknown for 119 min: the caller failed in 9 of 9 isolated failures of the callee \
                 (100 %, 90 % interval 77 % to 100 %); fewer than 10 prove nothing",
            ),
            (
                measured(Unknown, 49.96, 100.0, 7_200),
                "unknown for 2 h: the caller failed in 50.0 of 100 isolated failures of the callee \
                 (50 %, 90 % interval 42 % to 58 %); a ratio between 20 % and 80 % proves neither",
            ),
            (
                measured(Unknown, 1.0, 10.0, 0),
                "unknown for 0 s: the caller failed in 1 of 10 isolated failures of the callee \
                 (10 %, 90 % interval 2 % to 35 %); too few for proof: the interval must end below \
                 30 % or begin above 70 %",
            ),
            (
                measured(FailOpen, 0.3, 100.0, 172_800),
                "fail-open for 2 days: the caller failed in 0.3 of 100 isolated failures of the \
                 callee (0 %, 90 % interval 0 % to 3 %); proven by a ratio up to 20 % and an \
                 interval below 30 %",
            ),
            (
                measured(FailOpen, 33.0, 100.0, 0),
                "fail-open for 0 s: the caller failed in 33 of 100 isolated failures of the callee \
                 (33 %, 90 % interval 26 % to 41 %); proven earlier and held up to 35 %",
            ),
            (
                measured(FailClose, 10.0, 10.0, 0),
                "fail-close for 0 s: the caller failed in 10 of 10 isolated failures of the callee \
                 (100 %, 90 % interval 79 % to 100 %); proven by a ratio from 80 % and an interval \
                 above 70 %",
            ),
            (
                measured(FailClose, 66.0, 100.0, 0),
                "fail-close for 0 s: the caller failed in 66 of 100 isolated failures of the \
                 callee (66 %, 90 % interval 58 % to 73 %); proven earlier and held down to 65 %",
            ),
        ] {
            assert_eq!(measurement.to_string(), expected);
        }
    }

    #[test]
    fn explains_who_decided() {
        use Authority::{Annotation, Learned, Nobody, Operator};
        use EdgeClass::{FailClose, FailOpen, Unknown};
        let none = measured(MeasuredClass::NoData, 0.0, 0.0, 0);
        let close = measured(MeasuredClass::FailClose, 10.0, 10.0, 0);
        for (class, by, measured, begins, ends) in [
            (Unknown, Nobody, none, "no-data for 0 s: ", "; blamed as if fail-close"),
            (FailClose, Learned, close, "fail-close for 0 s: the caller failed", "above 70 %"),
            (
                FailOpen,
                Operator,
                close,
                "fail-open, declared by the operator; measured fail-close for 0 s: ",
                "above 70 %",
            ),
            (
                FailClose,
                Annotation,
                none,
                "fail-close, declared by the caller's code; measured no-data for 0 s: ",
                "the callee has failed in no finished minute",
            ),
        ] {
            let text = ClassFinding { class, by, measured }.to_string();
            assert!(text.starts_with(begins) && text.ends_with(ends), "{text}");
        }
    }

    #[test]
    fn a_contradiction_names_declarer_and_evidence() {
        let measured = measured(MeasuredClass::FailClose, 45.0, 50.0, 0);
        let text = Contradiction { by: Authority::Operator, measured }.to_string();
        assert_eq!(
            text,
            "declared fail-open by the operator, measured fail-close for 0 s: the caller failed in \
             45 of 50 isolated failures of the callee (90 %, 90 % interval 81 % to 95 %); proven \
             by a ratio from 80 % and an interval above 70 %; while this stands its failures are \
             retried at more than one level"
        );
    }
}
