//! What is counted on an edge and in a procedure: relaxed atomics, read by metrics and learning.

use std::sync::atomic::{AtomicU64, Ordering};

use onus_core::{Arm, Claim, ClaimReason, ClaimVerdict, EdgeOutcome, RetryCause, Stop};
use onus_learn::{CleanCounts, EdgeCounts};

use crate::wire::InvalidClaim;

/// A count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The place of a closed set's value in an array of counters.
pub(crate) trait Place: Copy + PartialEq + Sized + 'static {
    const ALL: &'static [Self];

    fn place(self) -> usize {
        // Every value is in `ALL`, which the tests of these types check; if one were not, its
        // count would go to the first place rather than end the process.
        Self::ALL.iter().position(|&other| other == self).unwrap_or(0)
    }
}

impl Place for Arm {
    const ALL: &'static [Self] = &[Self::Off, Self::Observe, Self::Control, Self::Enforce];

    fn place(self) -> usize {
        match self {
            Self::Off => 0,
            Self::Observe => 1,
            Self::Control => 2,
            Self::Enforce => 3,
        }
    }
}

impl Place for Stop {
    const ALL: &'static [Self] = &Self::ALL;
}

impl Place for RetryCause {
    const ALL: &'static [Self] = &Self::ALL;
}

impl Place for ClaimReason {
    const ALL: &'static [Self] = &Self::ALL;
}

impl Place for InvalidClaim {
    const ALL: &'static [Self] = &Self::ALL;
}

impl Place for Claim {
    const ALL: &'static [Self] =
        &[Self::Claimed, Self::ClaimedSilent, Self::Unclaimed, Self::UnclaimedShield];
}

/// What one arm of an edge has seen.
#[derive(Debug, Default)]
pub(crate) struct ArmCounters {
    /// Logical calls that ended ok.
    pub(crate) ok: Counter,
    /// Logical calls that failed for good.
    pub(crate) failed: Counter,
    /// Logical calls without an outcome: nobody waited for them any more.
    pub(crate) abandoned: Counter,
    /// Retries made, by what let them pass.
    pub(crate) retries: [Counter; RetryCause::ALL.len()],
    /// Retries made that succeeded, by what let them pass.
    pub(crate) retries_ok: [Counter; RetryCause::ALL.len()],
    /// Retries not made, by reason.
    pub(crate) stops: [Counter; Stop::ALL.len()],
    /// Retries made that an enforcing caller would not have made, by its reason.
    pub(crate) shadows: [Counter; Stop::ALL.len()],
}

/// What an edge has seen.
#[derive(Debug, Default)]
pub(crate) struct EdgeCounters {
    pub(crate) arms: [ArmCounters; 4],
    /// Replies with a claim that could not be read, by what is wrong with it.
    pub(crate) invalid_claims: [Counter; InvalidClaim::ALL.len()],
    /// Calls that continued a failed one of the application's own loop.
    pub(crate) repeats: Counter,
    /// Calls that could not be tied to a request.
    pub(crate) untied: Counter,
    evidence: [[Counter; 2]; 3],
}

impl EdgeCounters {
    pub(crate) fn arm(&self, arm: Arm) -> &ArmCounters {
        &self.arms[arm.place()]
    }

    /// Counts what a finished request teaches.
    pub(crate) fn teach(&self, outcome: EdgeOutcome, caller_failed: bool) {
        self.evidence(outcome, caller_failed).add();
    }

    pub(crate) fn evidence(&self, outcome: EdgeOutcome, caller_failed: bool) -> &Counter {
        let row = match outcome {
            EdgeOutcome::Ok => 0,
            EdgeOutcome::FailedAlone => 1,
            EdgeOutcome::FailedJointly => 2,
        };
        &self.evidence[row][usize::from(caller_failed)]
    }

    /// The evidence since the start, as the class estimator counts it.
    pub(crate) fn edge_counts(&self) -> EdgeCounts {
        let [[ok, ok_caller_failed], [alone, alone_both], [joint, joint_both]] =
            self.evidence.each_ref().map(|row| row.each_ref().map(Counter::get));
        let isolated = alone + alone_both;
        let joint = joint + joint_both;
        EdgeCounts {
            calls: ok + ok_caller_failed + isolated + joint,
            failures: isolated + joint,
            isolated,
            isolated_both: alone_both,
            joint,
            joint_both,
        }
    }
}

/// What one arm of a procedure has seen.
#[derive(Debug, Default)]
pub(crate) struct ProcedureArmCounters {
    pub(crate) ok: Counter,
    pub(crate) failed: Counter,
    pub(crate) cancelled: Counter,
    /// Claims sent, by reason.
    claims: [[Counter; ClaimReason::ALL.len()]; 4],
}

impl ProcedureArmCounters {
    pub(crate) fn claim(&self, verdict: &ClaimVerdict) {
        self.claims(verdict.claim, verdict.reason).add();
    }

    pub(crate) fn claims(&self, claim: Claim, reason: ClaimReason) -> &Counter {
        &self.claims[claim.place()][reason.place()]
    }
}

/// What a procedure of this service has seen.
#[derive(Debug, Default)]
pub(crate) struct ProcedureCounters {
    pub(crate) arms: [ProcedureArmCounters; 4],
    /// Requests that blame no outbound call: answered ok, answered with an error.
    pub(crate) clean: [Counter; 2],
}

impl ProcedureCounters {
    pub(crate) fn arm(&self, arm: Arm) -> &ProcedureArmCounters {
        &self.arms[arm.place()]
    }

    /// The requests that blame no call since the start.
    pub(crate) fn clean_counts(&self) -> CleanCounts {
        let [ok, failed] = self.clean.each_ref().map(Counter::get);
        CleanCounts { clean: ok + failed, clean_failed: failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_value_has_a_place_of_its_own<T: Place + std::fmt::Debug>() {
        for (place, &value) in T::ALL.iter().enumerate() {
            assert_eq!(value.place(), place, "{value:?}");
        }
    }

    #[test]
    fn places() {
        every_value_has_a_place_of_its_own::<Arm>();
        every_value_has_a_place_of_its_own::<Stop>();
        every_value_has_a_place_of_its_own::<RetryCause>();
        every_value_has_a_place_of_its_own::<ClaimReason>();
        every_value_has_a_place_of_its_own::<Claim>();
        every_value_has_a_place_of_its_own::<InvalidClaim>();
    }

    #[test]
    fn evidence_adds_up_to_what_learning_counts() {
        // [class-1]
        let edge = EdgeCounters::default();
        let [ok, alone, jointly] =
            [EdgeOutcome::Ok, EdgeOutcome::FailedAlone, EdgeOutcome::FailedJointly];
        let taught = [
            (ok, false, 1),
            (ok, true, 2),
            (alone, false, 4),
            (alone, true, 8),
            (jointly, false, 16),
            (jointly, true, 32),
        ];
        for (outcome, caller_failed, times) in taught {
            (0..times).for_each(|_| edge.teach(outcome, caller_failed));
        }
        let expected = EdgeCounts {
            calls: 63,
            failures: 60,
            isolated: 12,
            isolated_both: 8,
            joint: 48,
            joint_both: 32,
        };
        assert_eq!(edge.edge_counts(), expected);
    }
}
