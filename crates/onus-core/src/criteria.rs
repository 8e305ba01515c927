//! Were the retry criteria met? Whether a retry opportunity on a failed call was used up or
//! deliberately refused (protocol §3).

use crate::claim::ClaimReason;
use crate::decision::Stop;

/// How a logical call ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// A failed attempt, and no further one for this reason.
    Stopped(Stop),
    /// Still without an outcome when the handler answered with an error.
    InFlight,
}

impl Ending {
    /// The ending as the reason of a claim.
    #[must_use]
    pub const fn reason(self) -> ClaimReason {
        match self {
            Self::Stopped(stop) => ClaimReason::Stopped(stop),
            Self::InFlight => ClaimReason::InFlight,
        }
    }
}

/// Whether the retry criteria were met after `attempts` attempts, whoever made them.
///
/// Met by a first retry, and by every refusal that must not be answered by a retry further up.
/// A stop that only says "no retry here" after a single attempt is not met: the opportunity goes
/// to the caller above.
#[must_use]
pub const fn criteria_met(attempts: u32, ending: Ending) -> bool {
    if attempts >= 2 {
        return true;
    }
    match ending {
        Ending::Stopped(
            Stop::Suppressed | Stop::Marked | Stop::Pushback | Stop::BudgetDenied | Stop::Gated,
        ) => true,
        // `Exhausted` after one attempt cannot come from the table: a policy has two or more.
        Ending::Stopped(
            Stop::NotConfigured | Stop::NotReplayable | Stop::NoTime | Stop::Exhausted,
        )
        | Ending::InFlight => false,
    }
}
