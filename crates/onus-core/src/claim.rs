//! What a service says of its error, and what its caller reads.
//!
//! Two types, because they differ: a service sends a [`Claim`]; a caller reads a [`CalleeClaim`],
//! which also knows a reply without a claim and no reply at all.

use crate::decision::Stop;

/// What a service sends with an error (protocol §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// A retry opportunity is open: the direct caller may retry.
    Claimed,
    /// As [`Claim::Claimed`], and what the service met was silence (`kind=silent`): the caller's
    /// retry carries the mark.
    ClaimedSilent,
    /// The error was passed on, and a retry was made or refused below: the caller must not retry.
    Unclaimed,
    /// An operator put a shield on the service (`kind=shield`): no caller retries, not even one
    /// that only observes.
    UnclaimedShield,
}

impl Claim {
    /// Whether the error is passed on rather than owned.
    #[must_use]
    pub const fn is_unclaimed(self) -> bool {
        match self {
            Self::Unclaimed | Self::UnclaimedShield => true,
            Self::Claimed | Self::ClaimedSilent => false,
        }
    }
}

/// What a caller reads at the end of a failed attempt (protocol §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalleeClaim {
    /// The reply carried this claim.
    Reply(Claim),
    /// A reply without a valid claim.
    Missing,
    /// No reply: refused, reset, timed out.
    Silent,
}

impl CalleeClaim {
    /// The reply said `claimed`.
    pub const CLAIMED: Self = Self::Reply(Claim::Claimed);
    /// The reply said `claimed;kind=silent`.
    pub const CLAIMED_SILENT: Self = Self::Reply(Claim::ClaimedSilent);
    /// The reply said `unclaimed`.
    pub const UNCLAIMED: Self = Self::Reply(Claim::Unclaimed);
    /// The reply said `unclaimed;kind=shield`.
    pub const UNCLAIMED_SHIELD: Self = Self::Reply(Claim::UnclaimedShield);
    /// Every value, for tables and enumerations.
    pub const ALL: [Self; 6] = [
        Self::CLAIMED,
        Self::CLAIMED_SILENT,
        Self::UNCLAIMED,
        Self::UNCLAIMED_SHIELD,
        Self::Missing,
        Self::Silent,
    ];

    /// Whether the reply was unclaimed, by whatever reason.
    #[must_use]
    pub const fn is_unclaimed(self) -> bool {
        match self {
            Self::Reply(claim) => claim.is_unclaimed(),
            Self::Missing | Self::Silent => false,
        }
    }

    /// Whether nobody has answered for the error: what sets the mark on the next attempt, and
    /// what a marked request does not retry (protocol §6).
    #[must_use]
    pub const fn is_unanswered(self) -> bool {
        match self {
            Self::Reply(Claim::ClaimedSilent) | Self::Missing | Self::Silent => true,
            Self::Reply(Claim::Claimed | Claim::Unclaimed | Claim::UnclaimedShield) => false,
        }
    }

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reply(Claim::Claimed) => "claimed",
            Self::Reply(Claim::ClaimedSilent) => "claimed-silent",
            Self::Reply(Claim::Unclaimed) => "unclaimed",
            Self::Reply(Claim::UnclaimedShield) => "unclaimed-shield",
            Self::Missing => "missing",
            Self::Silent => "silent",
        }
    }
}

/// Why a service sent its claim; the same spelling on the wire, in metrics and in logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimReason {
    /// No failed dependency is to blame: the service is the cause.
    Own,
    /// A dependency is to blame, and no retry opportunity on it was used or refused.
    Handoff,
    /// Every attempt at every blamed dependency met silence, and `silent-claims` is on.
    Silent,
    /// The service cannot tie its calls to the request.
    ContextLost,
    /// An operator's shield.
    Operator,
    /// A dependency's retry loop ended for this reason.
    Stopped(Stop),
    /// The dependency's call was still under way when the handler gave up.
    InFlight,
}

impl ClaimReason {
    /// Every value, for tables, parsers and metric families.
    pub const ALL: [Self; 15] = [
        Self::Own,
        Self::Handoff,
        Self::Silent,
        Self::ContextLost,
        Self::Operator,
        Self::Stopped(Stop::Suppressed),
        Self::Stopped(Stop::Pushback),
        Self::Stopped(Stop::NotConfigured),
        Self::Stopped(Stop::Marked),
        Self::Stopped(Stop::NotReplayable),
        Self::Stopped(Stop::Exhausted),
        Self::Stopped(Stop::NoTime),
        Self::Stopped(Stop::Gated),
        Self::Stopped(Stop::BudgetDenied),
        Self::InFlight,
    ];

    /// The spelling on the wire, in metrics and in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Handoff => "handoff",
            Self::Silent => "silent",
            Self::ContextLost => "context-lost",
            Self::Operator => "operator",
            Self::Stopped(stop) => stop.as_str(),
            Self::InFlight => "in-flight",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn what_a_caller_makes_of_each_value() {
        // [mark-3] [decide-1] [decide-6]; unclaimed, unanswered.
        for (read, unclaimed, unanswered) in [
            (CalleeClaim::CLAIMED, false, false),
            (CalleeClaim::CLAIMED_SILENT, false, true),
            (CalleeClaim::UNCLAIMED, true, false),
            (CalleeClaim::UNCLAIMED_SHIELD, true, false),
            (CalleeClaim::Missing, false, true),
            (CalleeClaim::Silent, false, true),
        ] {
            assert_eq!(read.is_unclaimed(), unclaimed, "{read:?}");
            assert_eq!(read.is_unanswered(), unanswered, "{read:?}");
        }
    }

    #[test]
    fn reasons_are_spelt_as_on_the_wire() {
        // [wire-2]
        let spelt = "own handoff silent context-lost operator suppressed pushback not-configured \
                     marked not-replayable exhausted no-time gated budget-denied in-flight";
        let shipped: Vec<_> = ClaimReason::ALL.into_iter().map(ClaimReason::as_str).collect();
        assert_eq!(shipped, spelt.split_whitespace().collect::<Vec<_>>());
    }
}
