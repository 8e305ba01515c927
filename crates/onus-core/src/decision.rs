//! May this failed attempt be retried? The table of protocol §2, as first-match lines.

use crate::claim::CalleeClaim;
use crate::mode::Ownership;

/// Why a logical call gets no further attempt. The order is that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The callee's error is unclaimed: somebody below it has used or refused the retry.
    Suppressed,
    /// The callee asked not to be called again, or not within the time left.
    Pushback,
    /// No policy allows a retry of this error, method or edge.
    NotConfigured,
    /// The request being served is itself a retry after silence, and this attempt met silence.
    Marked,
    /// The request body is gone, or the caller already sees the response.
    NotReplayable,
    /// All configured attempts were made.
    Exhausted,
    /// The deadline leaves no room for the backoff and another attempt.
    NoTime,
    /// Too few retries on this edge succeed.
    Gated,
    /// The edge's retry budget is empty.
    BudgetDenied,
}

impl Stop {
    /// Every value, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Suppressed,
        Self::Pushback,
        Self::NotConfigured,
        Self::Marked,
        Self::NotReplayable,
        Self::Exhausted,
        Self::NoTime,
        Self::Gated,
        Self::BudgetDenied,
    ];

    /// The spelling on the wire, in metrics and in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suppressed => "suppressed",
            Self::Pushback => "pushback",
            Self::NotConfigured => "not-configured",
            Self::Marked => "marked",
            Self::NotReplayable => "not-replayable",
            Self::Exhausted => "exhausted",
            Self::NoTime => "no-time",
            Self::Gated => "gated",
            Self::BudgetDenied => "budget-denied",
        }
    }

    /// Whether a layer below that retries by itself is to be stopped as well: a refusal, and not only
    /// the lack of a policy or a body on this side.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        match self {
            Self::Suppressed
            | Self::Pushback
            | Self::Marked
            | Self::Exhausted
            | Self::NoTime
            | Self::Gated
            | Self::BudgetDenied => true,
            Self::NotConfigured | Self::NotReplayable => false,
        }
    }

    /// Whether only ownership stops here: an observing caller goes on (rows 1, 4 and 8).
    #[must_use]
    pub(crate) const fn is_of_ownership(self) -> bool {
        match self {
            Self::Suppressed | Self::Marked | Self::Gated => true,
            Self::Pushback
            | Self::NotConfigured
            | Self::NotReplayable
            | Self::Exhausted
            | Self::NoTime
            | Self::BudgetDenied => false,
        }
    }
}

/// How the callee pushed back, measured against the time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PushbackFact {
    /// It did not, or asked for a wait that fits.
    None,
    /// `grpc-retry-pushback-ms` was negative or not a number.
    Refused,
    /// It asked for a wait longer than the time left.
    TooLong,
}

/// All that rows 1 to 8 look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// What the caller read.
    pub claim: CalleeClaim,
    /// Whether the callee pushed back.
    pub pushback: PushbackFact,
    /// Whether the edge is inside the trust boundary.
    pub trusted: bool,
    /// Whether a policy of at least two attempts covers this edge, method and error.
    pub covered: bool,
    /// Whether the request being served carries the mark.
    pub marked: bool,
    /// Whether the request can be sent again and no response has been passed on.
    pub replayable: bool,
    /// Whether attempts are left.
    pub attempts_left: bool,
    /// Whether the backoff and another attempt fit into the time left.
    pub time_left: bool,
    /// Whether the efficacy gate is open.
    pub gate_open: bool,
}

/// The retry decision: `Ok` to retry, `Err` with the first row that matches.
///
/// `take_token` withdraws from the budget and is called only where every other row lets the
/// retry pass.
///
/// # Errors
///
/// The reason for making no further attempt.
pub fn decide(
    facts: &Facts,
    ownership: Ownership,
    take_token: impl FnOnce() -> bool,
) -> Result<(), Stop> {
    let enforced = ownership == Ownership::Enforced;
    if facts.claim == CalleeClaim::UNCLAIMED_SHIELD {
        return Err(Stop::Suppressed);
    }
    if facts.claim == CalleeClaim::UNCLAIMED && enforced {
        return Err(Stop::Suppressed);
    }
    decide_unsuppressed(facts, ownership, take_token)
}

/// Rows 2 to 10: the decision for an error that row 1 lets pass, and for a probe.
///
/// # Errors
///
/// The reason for making no further attempt.
pub fn decide_unsuppressed(
    facts: &Facts,
    ownership: Ownership,
    take_token: impl FnOnce() -> bool,
) -> Result<(), Stop> {
    let enforced = ownership == Ownership::Enforced;
    match facts.pushback {
        // With an unclaimed error it is the veto that Onus itself sends to other callers.
        PushbackFact::Refused if !facts.claim.is_unclaimed() => {
            // An untrusted callee may end the loop, and may not make the error unclaimed.
            return Err(if facts.trusted { Stop::Pushback } else { Stop::NotConfigured });
        }
        PushbackFact::TooLong => return Err(Stop::Pushback),
        PushbackFact::Refused | PushbackFact::None => {}
    }
    if !facts.covered {
        return Err(Stop::NotConfigured);
    }
    if facts.marked && facts.claim.is_unanswered() && enforced {
        return Err(Stop::Marked);
    }
    if !facts.replayable {
        return Err(Stop::NotReplayable);
    }
    if !facts.attempts_left {
        return Err(Stop::Exhausted);
    }
    if !facts.time_left {
        return Err(Stop::NoTime);
    }
    if !facts.gate_open && enforced {
        return Err(Stop::Gated);
    }
    if !take_token() {
        return Err(Stop::BudgetDenied);
    }
    Ok(())
}
