//! All that was counted, for whoever adds it up elsewhere. Nothing is counted twice: these are the
//! counters that metrics and learning read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use onus_core::{Arm, CalleeClaim, Claim, ClaimReason, EdgeOutcome, RetryCause, Stop, Timestamp};

use crate::agent::Agent;
use crate::counters::{Counter, Place};
use crate::edges::Edge;
use crate::symbols::{Procedure, Symbols};

/// What an edge has seen since the start, in all arms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeTotals {
    /// Finished requests by what became of the edge (ok, failed alone, failed beside others) and of
    /// the caller (ok, failed).
    pub requests: [[u64; 2]; 3],
    /// Logical calls that ended ok, that failed for good, that have no outcome.
    pub calls: [u64; 3],
    /// Retries made, by cause: made, and of those answered without an error.
    pub retries: RetryTotals,
    /// Retries not made, in the order of [`Stop::ALL`].
    pub stops: [u64; Stop::ALL.len()],
    /// Retries made that enforcing would not have made.
    pub shadows: u64,
    /// Calls that could not be tied to a request.
    pub untied: u64,
    /// Calls that went on where the application repeats.
    pub repeats: u64,
    /// Replies with a claim that could not be read.
    pub invalid_claims: u64,
}

/// Retries made: how many, and of those how many were answered without an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryTotals {
    /// After a claim that leaves them open.
    pub claimed: [u64; 2],
    /// After an answer without a claim, or after silence.
    pub missing: [u64; 2],
    /// After an unclaimed error, while observing.
    pub unclaimed: [u64; 2],
    /// Suppressed, and made all the same to see what suppression costs.
    pub probe: [u64; 2],
}

/// What a procedure has seen since the start, in all arms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcedureTotals {
    /// Requests answered ok, answered with an error, given up.
    pub requests: [u64; 3],
    /// Requests that blame no call: answered ok, answered with an error.
    pub clean: [u64; 2],
    /// Claims sent, in the order of [`ClaimReason::ALL`].
    pub claims: [u64; ClaimReason::ALL.len()],
}

/// Between which procedures an edge is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeName {
    /// The procedure that is served; empty for calls that no request made.
    pub caller: String,
    /// The service that is called.
    pub callee: Arc<str>,
    /// The procedure that is called.
    pub procedure: String,
}

impl Edge {
    /// Between which procedures the edge is, in the names of its agent's table.
    #[must_use]
    pub fn name(&self, symbols: &Symbols) -> EdgeName {
        self.key.name(symbols)
    }

    /// What the edge has seen since the start.
    #[must_use]
    pub fn totals(&self) -> EdgeTotals {
        let counters = &self.lasting.counters;
        let outcomes = [EdgeOutcome::Ok, EdgeOutcome::FailedAlone, EdgeOutcome::FailedJointly];
        let mut totals = EdgeTotals {
            requests: outcomes.map(|outcome| {
                [false, true].map(|failed| counters.evidence(outcome, failed).get())
            }),
            untied: counters.untied.get(),
            repeats: counters.repeats.get(),
            invalid_claims: counters.invalid_claims.iter().map(Counter::get).sum(),
            ..EdgeTotals::default()
        };
        for &arm in Arm::ALL {
            let arm = counters.arm(arm);
            for (total, count) in
                totals.calls.iter_mut().zip([&arm.ok, &arm.failed, &arm.abandoned])
            {
                *total += count.get();
            }
            for cause in RetryCause::ALL {
                let place = cause.place();
                let [made, ok] = totals.retries.of(cause);
                *made += arm.retries[place].get();
                *ok += arm.retries_ok[place].get();
            }
            for (total, count) in totals.stops.iter_mut().zip(&arm.stops) {
                *total += count.get();
            }
            totals.shadows += arm.shadows.iter().map(Counter::get).sum::<u64>();
        }
        totals
    }

    /// Whole retries that the budget would pay for at once; `None` without a budget.
    #[must_use]
    pub fn budget_balance(&self, now: Timestamp) -> Option<u64> {
        self.memory(now).state.budget.as_ref().map(|budget| budget.balance(now))
    }

    /// Whether a layer below was seen to retry that nobody declared.
    #[must_use]
    pub fn has_foreign_retries(&self) -> bool {
        self.lasting.foreign.load(Ordering::Relaxed)
    }

    /// Whether a method that is not idempotent may be retried on the edge.
    #[must_use]
    pub fn retries_unsafe_methods(&self) -> bool {
        self.policy.retry.is_some_and(|retry| retry.unsafe_methods)
    }
}

impl EdgeTotals {
    /// Retries not made for this reason.
    #[must_use]
    pub fn stopped(&self, stop: Stop) -> u64 {
        self.stops[stop.place()]
    }
}

impl RetryTotals {
    fn of(&mut self, cause: RetryCause) -> &mut [u64; 2] {
        match cause {
            RetryCause::Claim(CalleeClaim::Reply(Claim::Claimed | Claim::ClaimedSilent)) => {
                &mut self.claimed
            }
            RetryCause::Claim(CalleeClaim::Reply(Claim::Unclaimed | Claim::UnclaimedShield)) => {
                &mut self.unclaimed
            }
            RetryCause::Claim(CalleeClaim::Missing | CalleeClaim::Silent) => &mut self.missing,
            RetryCause::Probe => &mut self.probe,
        }
    }

    /// All retries: made, and of those answered without an error.
    #[must_use]
    pub fn all(&self) -> [u64; 2] {
        let causes = [self.claimed, self.missing, self.unclaimed, self.probe];
        causes.iter().fold([0, 0], |[made, ok], cause| [made + cause[0], ok + cause[1]])
    }
}

impl ProcedureTotals {
    /// Claims sent for this reason.
    #[must_use]
    pub fn claims(&self, reason: ClaimReason) -> u64 {
        self.claims[reason.place()]
    }
}

impl Agent {
    /// What the procedures of this service have seen since the start.
    pub fn procedure_totals(&self) -> impl Iterator<Item = (Procedure, ProcedureTotals)> {
        self.procedures().iter().map(|served| {
            let counters = &served.counters;
            let mut totals = ProcedureTotals {
                clean: counters.clean.each_ref().map(Counter::get),
                ..ProcedureTotals::default()
            };
            for &arm in Arm::ALL {
                let arm = counters.arm(arm);
                let requests = [&arm.ok, &arm.failed, &arm.cancelled];
                for (total, count) in totals.requests.iter_mut().zip(requests) {
                    *total += count.get();
                }
                for (total, &reason) in totals.claims.iter_mut().zip(ClaimReason::ALL.iter()) {
                    let sent = Claim::ALL.iter().map(|&claim| arm.claims(claim, reason).get());
                    *total += sent.sum::<u64>();
                }
            }
            (served.procedure, totals)
        })
    }
}
