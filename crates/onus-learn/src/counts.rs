//! What is counted, per inbound request, on final outcomes.

use std::ops::{Add, AddAssign};

use onus_core::EdgeClass;

/// Requests of one edge within a minute, by what became of callee and caller.
///
/// One inbound request counts once, however many logical calls of this edge it made; it counts as
/// failed if any of them failed finally. Cancelled calls, client errors and probes are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EdgeCounts {
    /// Requests that called this edge.
    pub calls: u64,
    /// … in which the edge failed.
    pub failures: u64,
    /// … and no other edge that is to blame did: the evidence for a class.
    pub isolated: u64,
    /// … and the caller failed too.
    pub isolated_both: u64,
    /// … and so did another edge that is to blame: they cannot tell which of the two mattered.
    pub joint: u64,
    /// … and the caller failed too.
    pub joint_both: u64,
}

impl EdgeCounts {
    /// The counts of one finished request that called this edge. An edge is to blame when it failed
    /// and is not known to be fail-open.
    #[must_use]
    pub const fn of_request(
        edge_failed: bool,
        another_is_to_blame: bool,
        caller_failed: bool,
    ) -> Self {
        let isolated = edge_failed && !another_is_to_blame;
        let joint = edge_failed && another_is_to_blame;
        Self {
            calls: 1,
            failures: edge_failed as u64,
            isolated: isolated as u64,
            isolated_both: (isolated && caller_failed) as u64,
            joint: joint as u64,
            joint_both: (joint && caller_failed) as u64,
        }
    }
}

impl Add for EdgeCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            failures: self.failures.saturating_add(other.failures),
            isolated: self.isolated.saturating_add(other.isolated),
            isolated_both: self.isolated_both.saturating_add(other.isolated_both),
            joint: self.joint.saturating_add(other.joint),
            joint_both: self.joint_both.saturating_add(other.joint_both),
        }
    }
}

impl AddAssign for EdgeCounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Requests of one caller procedure within a minute that blame no outbound call.
///
/// They show how the caller does by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CleanCounts {
    /// Requests in which no outbound call failed, or only on edges known to be fail-open.
    pub clean: u64,
    /// … that failed all the same: the caller's own errors.
    pub clean_failed: u64,
}

impl CleanCounts {
    /// The counts of one finished request that blames no outbound call.
    #[must_use]
    pub const fn of_request(caller_failed: bool) -> Self {
        Self { clean: 1, clean_failed: caller_failed as u64 }
    }

    /// Those that say how the caller does without an edge, given the edge's counts of the same
    /// minute and the class that it had.
    ///
    /// Where the edge is held fail-open its own failures are among the clean requests. An edge that
    /// stops being fail-open must not stop its caller from learning so.
    #[must_use]
    pub const fn apart_from(self, edge: &EdgeCounts, class: EdgeClass) -> Self {
        match class {
            EdgeClass::FailOpen => Self {
                clean: self.clean.saturating_sub(edge.isolated),
                clean_failed: self.clean_failed.saturating_sub(edge.isolated_both),
            },
            EdgeClass::FailClose | EdgeClass::Unknown => self,
        }
    }
}

impl Add for CleanCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            clean: self.clean.saturating_add(other.clean),
            clean_failed: self.clean_failed.saturating_add(other.clean_failed),
        }
    }
}

impl AddAssign for CleanCounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Whether nothing may be learnt from this minute about an edge of this caller procedure.
///
/// `caller` is [apart from](CleanCounts::apart_from) the edge.
///
/// A caller in trouble of its own fails beside its callees without being taken down by them: every
/// edge would look fail-close. So a minute counts for nothing in which more than 10 % of at least
/// 10 clean requests failed.
#[must_use]
pub const fn frozen(caller: CleanCounts) -> bool {
    // For whole numbers "more than a tenth" and "more than the tenth rounded down" are the same.
    caller.clean >= FREEZE_MIN_CLEAN && caller.clean_failed > caller.clean / 10
}

/// Fewer clean requests say nothing about the caller's state: one failure would be over 10 %.
const FREEZE_MIN_CLEAN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_booked_by_what_failed() {
        // [class-1]
        let counts = |calls, failures, isolated, isolated_both, joint, joint_both| EdgeCounts {
            calls,
            failures,
            isolated,
            isolated_both,
            joint,
            joint_both,
        };
        // [edge failed, another edge failed, caller failed]
        for (facts, expected) in [
            ([false, false, false], counts(1, 0, 0, 0, 0, 0)),
            ([false, false, true], counts(1, 0, 0, 0, 0, 0)),
            ([false, true, false], counts(1, 0, 0, 0, 0, 0)),
            ([false, true, true], counts(1, 0, 0, 0, 0, 0)),
            ([true, false, false], counts(1, 1, 1, 0, 0, 0)),
            ([true, false, true], counts(1, 1, 1, 1, 0, 0)),
            ([true, true, false], counts(1, 1, 0, 0, 1, 0)),
            ([true, true, true], counts(1, 1, 0, 0, 1, 1)),
        ] {
            let [edge, other, caller] = facts;
            assert_eq!(EdgeCounts::of_request(edge, other, caller), expected, "{facts:?}");
        }
    }

    #[test]
    fn sums_field_by_field_and_saturate() {
        let some = EdgeCounts {
            calls: 1,
            failures: 2,
            isolated: 3,
            isolated_both: 4,
            joint: 5,
            joint_both: 6,
        };
        let mut sum = some;
        sum += some;
        let double = EdgeCounts {
            calls: 2,
            failures: 4,
            isolated: 6,
            isolated_both: 8,
            joint: 10,
            joint_both: 12,
        };
        assert_eq!(sum, double);
        let full = EdgeCounts {
            calls: u64::MAX,
            failures: u64::MAX,
            isolated: u64::MAX,
            isolated_both: u64::MAX,
            joint: u64::MAX,
            joint_both: u64::MAX,
        };
        assert_eq!(full + some, full);

        let mut clean = CleanCounts::of_request(true);
        clean += CleanCounts::of_request(false);
        assert_eq!(clean, CleanCounts { clean: 2, clean_failed: 1 });
        let full = CleanCounts { clean: u64::MAX, clean_failed: u64::MAX };
        assert_eq!(full + clean, full);
    }

    #[test]
    fn a_survived_edge_is_no_witness_for_itself() {
        // [class-13]
        let minute = CleanCounts { clean: 100, clean_failed: 40 };
        let edge = EdgeCounts { isolated: 60, isolated_both: 39, ..EdgeCounts::default() };
        let torn = EdgeCounts { isolated: 101, isolated_both: 41, ..EdgeCounts::default() };
        let left = |clean, clean_failed| CleanCounts { clean, clean_failed };
        for (edge, class, expected) in [
            (edge, EdgeClass::FailOpen, left(40, 1)),
            (edge, EdgeClass::FailClose, minute),
            (edge, EdgeClass::Unknown, minute),
            // Counters read while a request is being booked.
            (torn, EdgeClass::FailOpen, left(0, 0)),
        ] {
            assert_eq!(minute.apart_from(&edge, class), expected, "{edge:?}, {class:?}");
        }
    }

    #[test]
    fn freezes_above_ten_per_cent_of_at_least_ten() {
        // [class-8]
        for (clean, clean_failed, expected) in [
            (0, 0, false),
            (9, 9, false),
            (10, 0, false),
            (10, 1, false),
            (10, 2, true),
            (19, 1, false),
            (19, 2, true),
            (20, 2, false),
            (1_000, 100, false),
            (1_000, 101, true),
            (u64::MAX, u64::MAX, true),
            (u64::MAX, u64::MAX / 10, false),
        ] {
            let counts = CleanCounts { clean, clean_failed };
            assert_eq!(frozen(counts), expected, "{counts:?}");
        }
    }
}
