//! Whether a caller survives its callee, in the readings of P = P(caller failed | callee failed)
//! that are kept apart.

use onus_learn::{MeasuredClass, strict_class};

use crate::graph::Edge;

/// How often a callee failed, and how often its caller failed with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Failures of the callee.
    pub all: u64,
    /// … with which the caller failed.
    pub both: u64,
}

/// What was seen of a caller when its callee failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survival {
    /// Each call counted.
    pub calls: Failures,
    /// Each request of the caller counted once.
    pub requests: Failures,
    /// What is proven by the rules that decisions follow (protocol §9).
    pub proven: MeasuredClass,
}

/// Which of them says where a storm ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Only a proven class.
    #[default]
    Proven,
    /// The ratio of calls, however few.
    Calls,
    /// The ratio of requests, however few.
    Requests,
}

impl Failures {
    /// P. None without a failure.
    #[must_use]
    pub fn p(self) -> Option<f64> {
        (self.all > 0).then(|| self.both as f64 / self.all as f64)
    }

    /// The class that P alone suggests, with nothing on the border.
    #[must_use]
    pub fn class(self) -> MeasuredClass {
        strict_class(self.both, self.all)
    }
}

impl Survival {
    /// An edge of which no failure was seen.
    pub const UNSEEN: Self = Self {
        calls: Failures { all: 0, both: 0 },
        requests: Failures { all: 0, both: 0 },
        proven: MeasuredClass::NoData,
    };

    /// The class in one reading.
    #[must_use]
    pub fn class(&self, reading: Reading) -> MeasuredClass {
        match reading {
            Reading::Proven => self.proven,
            Reading::Calls => self.calls.class(),
            Reading::Requests => self.requests.class(),
        }
    }

    /// The edge that `reading` makes of it, while decisions follow what is proven.
    #[must_use]
    pub fn edge(&self, attempts: u32, reading: Reading) -> Edge {
        let is_open = |reading| self.class(reading) == MeasuredClass::FailOpen;
        Edge {
            fail_open: is_open(reading),
            held_fail_open: is_open(Reading::Proven),
            ..Edge::retrying(attempts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_says_what_is_true_and_proof_what_is_held() {
        let (few, many) = (Failures { all: 2, both: 0 }, Failures { all: 40, both: 39 });
        for (calls, requests, proven, reading, fail_open, held) in [
            (few, few, MeasuredClass::Unknown, Reading::Proven, false, false),
            (few, few, MeasuredClass::Unknown, Reading::Calls, true, false),
            (many, few, MeasuredClass::Unknown, Reading::Calls, false, false),
            (many, few, MeasuredClass::Unknown, Reading::Requests, true, false),
            (few, few, MeasuredClass::FailOpen, Reading::Proven, true, true),
            (many, many, MeasuredClass::FailOpen, Reading::Calls, false, true),
        ] {
            let edge = Survival { calls, requests, proven }.edge(2, reading);
            let expected = Edge { attempts: 2, fail_open, held_fail_open: held };
            assert_eq!(edge, expected, "{calls:?} {requests:?} {proven:?} {reading:?}");
        }
        // No failure, no class: nothing may be called fail-open.
        for reading in [Reading::Proven, Reading::Calls, Reading::Requests] {
            assert_eq!(Survival::UNSEEN.class(reading), MeasuredClass::NoData);
            assert!(!Survival::UNSEEN.edge(2, reading).fail_open);
        }
        assert_eq!((few.p(), Failures::default().p()), (Some(0.0), None));
    }
}
