//! The shipped rules, and rules that were considered and rejected.
//!
//! A variant changes what the shipped code is told, or what is made of its answer; the decisions
//! themselves are always those of `onus-core`.

use onus_core::{
    Arm, Claim, ClaimReason, ClaimVerdict, EdgeClass, Ending, Stop, Tries, criteria_met,
};

/// The rules of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rules {
    /// As shipped.
    #[default]
    Shipped,
    /// Every service is in mode off.
    NoOwnership,
    /// Every error of a dependency is unclaimed, retried or not.
    PlainMatrix,
    /// The criteria are also met when attempts = max, where no policy is a max of 1.
    AttemptsAreMax,
    /// "The callee said unclaimed" does not meet the criteria.
    SuppressedNotMet,
    /// A denied budget does not meet the criteria.
    DeniedNotMet,
    /// An error that the policy excludes meets the criteria.
    ExcludedMet,
    /// Unclaimed only where all blamed calls have their criteria met.
    AllMet,
    /// The last blamed call decides alone.
    LastDecides,
    /// A hand-off does not carry `kind=silent`.
    MarkWashedOff,
    /// No retry carries the mark.
    NoMark,
    /// A dropped call has no outcome, whatever else failed.
    DroppedIsNothing,
    /// Only edges known to be fail-close are blamed.
    UnknownNotBlamed,
    /// A call whose retry succeeded counts as failed.
    FailedAttemptBlamed,
    /// Attempts of layers below are not counted.
    LayersNotCounted,
}

impl Rules {
    /// Every value.
    pub const ALL: [Self; 15] = [
        Self::Shipped,
        Self::NoOwnership,
        Self::PlainMatrix,
        Self::AttemptsAreMax,
        Self::SuppressedNotMet,
        Self::DeniedNotMet,
        Self::ExcludedMet,
        Self::AllMet,
        Self::LastDecides,
        Self::MarkWashedOff,
        Self::NoMark,
        Self::DroppedIsNothing,
        Self::UnknownNotBlamed,
        Self::FailedAttemptBlamed,
        Self::LayersNotCounted,
    ];

    /// The name that people type.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::NoOwnership => "no-ownership",
            Self::PlainMatrix => "plain-matrix",
            Self::AttemptsAreMax => "attempts-are-max",
            Self::SuppressedNotMet => "suppressed-not-met",
            Self::DeniedNotMet => "denied-not-met",
            Self::ExcludedMet => "excluded-met",
            Self::AllMet => "all-met",
            Self::LastDecides => "last-decides",
            Self::MarkWashedOff => "mark-washed-off",
            Self::NoMark => "no-mark",
            Self::DroppedIsNothing => "dropped-is-nothing",
            Self::UnknownNotBlamed => "unknown-not-blamed",
            Self::FailedAttemptBlamed => "failed-attempt-blamed",
            Self::LayersNotCounted => "layers-not-counted",
        }
    }

    /// What the rules say.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Shipped => "as shipped",
            Self::NoOwnership => "every service is in mode `off`",
            Self::PlainMatrix => "every error of a dependency is unclaimed, retried or not",
            Self::AttemptsAreMax => "a call without a policy has used up its one attempt",
            Self::SuppressedNotMet => "a suppressed retry leaves the next to the caller",
            Self::DeniedNotMet => "a denied budget leaves the retry to the caller",
            Self::ExcludedMet => "an error that the policy excludes is not retried further up",
            Self::AllMet => "unclaimed only where every blamed call was retried or refused",
            Self::LastDecides => "the blamed call that failed last decides alone",
            Self::MarkWashedOff => "a claim handed on does not say that a reply was missing",
            Self::NoMark => "no retry carries the mark",
            Self::DroppedIsNothing => "a call that was given up has no outcome",
            Self::UnknownNotBlamed => "only edges known to be fail-close are blamed",
            Self::FailedAttemptBlamed => "a call whose retry succeeded counts as failed",
            Self::LayersNotCounted => "attempts of layers below are not counted",
        }
    }

    /// The rules of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rules| rules.as_str() == name)
    }

    pub(crate) fn arm(self, arm: Arm) -> Arm {
        if self == Self::NoOwnership { Arm::Off } else { arm }
    }

    /// The class of which the request being served is told.
    pub(crate) fn class(self, held: EdgeClass) -> EdgeClass {
        match held {
            EdgeClass::Unknown if self == Self::UnknownNotBlamed => EdgeClass::FailOpen,
            EdgeClass::FailClose | EdgeClass::FailOpen | EdgeClass::Unknown => held,
        }
    }

    pub(crate) fn marks(self) -> bool {
        self != Self::NoMark
    }

    pub(crate) fn counts_layers(self) -> bool {
        self != Self::LayersNotCounted
    }

    pub(crate) fn blames_failed_attempts(self) -> bool {
        self == Self::FailedAttemptBlamed
    }

    pub(crate) fn sees_dropped_calls(self) -> bool {
        self != Self::DroppedIsNothing
    }

    /// The final failure of which the request being served is told, for a call of at most `max`
    /// attempts.
    pub(crate) fn told(self, tries: Tries, stop: Stop, max: u32) -> (Tries, Stop) {
        let met = criteria_met(tries.attempts, tries.ending(stop));
        let as_said = match self {
            Self::AttemptsAreMax => Some(met || tries.attempts >= max),
            Self::SuppressedNotMet => {
                Some(met && !(tries.attempts < 2 && stop == Stop::Suppressed))
            }
            Self::DeniedNotMet => Some(met && !(tries.attempts < 2 && stop == Stop::BudgetDenied)),
            Self::ExcludedMet => Some(met || stop == Stop::NotConfigured && max >= 2),
            Self::Shipped
            | Self::NoOwnership
            | Self::PlainMatrix
            | Self::AllMet
            | Self::LastDecides
            | Self::MarkWashedOff
            | Self::NoMark
            | Self::DroppedIsNothing
            | Self::UnknownNotBlamed
            | Self::FailedAttemptBlamed
            | Self::LayersNotCounted => None,
        };
        match as_said {
            None => (tries, stop),
            Some(said) if said == met => (tries, stop),
            Some(true) => (tries, Stop::BudgetDenied),
            Some(false) => (Tries { attempts: 1, ..tries }, Stop::NotConfigured),
        }
    }

    /// What becomes of the claim; `criteria` are those of the blamed calls.
    pub(crate) fn claim(self, verdict: ClaimVerdict, criteria: &Criteria) -> ClaimVerdict {
        let unclaimed = |reason| ClaimVerdict { claim: Claim::Unclaimed, reason, ..verdict };
        let reason = ClaimReason::Handoff;
        let claimed = ClaimVerdict { claim: Claim::Claimed, reason, vetoes: false, ..verdict };
        let is_handoff = verdict.reason == ClaimReason::Handoff;
        match self {
            Self::PlainMatrix if is_handoff => unclaimed(ClaimReason::Stopped(Stop::NotConfigured)),
            Self::AllMet if criteria.some_unmet && verdict.claim.is_unclaimed() => claimed,
            Self::LastDecides if criteria.last_met == Some(false) => claimed,
            Self::MarkWashedOff if is_handoff => claimed,
            Self::Shipped
            | Self::NoOwnership
            | Self::PlainMatrix
            | Self::AttemptsAreMax
            | Self::SuppressedNotMet
            | Self::DeniedNotMet
            | Self::ExcludedMet
            | Self::AllMet
            | Self::LastDecides
            | Self::MarkWashedOff
            | Self::NoMark
            | Self::DroppedIsNothing
            | Self::UnknownNotBlamed
            | Self::FailedAttemptBlamed
            | Self::LayersNotCounted => verdict,
        }
    }
}

/// The criteria of a request's blamed calls, for the variants that look at all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Criteria {
    some_unmet: bool,
    last_met: Option<bool>,
}

impl Criteria {
    /// A blamed call has failed for good.
    pub(crate) fn add(&mut self, tries: &Tries, ending: Ending) {
        let met = tries.criteria_met(ending);
        self.some_unmet |= !met;
        self.last_met = Some(met);
    }
}
