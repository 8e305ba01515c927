//! What is decided after a failed attempt.

use core::time::Duration;

use crate::claim::CalleeClaim;
use crate::decision::Stop;

/// The decision after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Send again.
    Retry(Retry),
    /// The call has failed for good, for this reason.
    Stop(Stop),
}

/// A retry that the decision allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retry {
    /// The wait before it.
    pub after: Duration,
    /// What let it pass.
    pub cause: RetryCause,
    /// The reason for which an enforcing caller would have stopped here.
    pub shadow: Option<Stop>,
}

/// What let a retry pass: the claim of the failed attempt, or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryCause {
    /// The attempt read this claim.
    Claim(CalleeClaim),
    /// The retry is suppressed, and made to see what suppression costs.
    Probe,
}

impl RetryCause {
    /// Every value, for metric families.
    pub const ALL: [Self; 7] = [
        Self::Claim(CalleeClaim::CLAIMED),
        Self::Claim(CalleeClaim::CLAIMED_SILENT),
        Self::Claim(CalleeClaim::UNCLAIMED),
        Self::Claim(CalleeClaim::UNCLAIMED_SHIELD),
        Self::Claim(CalleeClaim::Missing),
        Self::Claim(CalleeClaim::Silent),
        Self::Probe,
    ];

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim(claim) => claim.as_str(),
            Self::Probe => "probe",
        }
    }
}
