//! What is known of the attempts of a call.

use core::time::Duration;

use crate::claim::{CalleeClaim, Claim};
use crate::criteria::{Ending, criteria_met};
use crate::decision::Stop;
use crate::error::CallError;

/// The attempts of a logical call so far, whoever made them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tries {
    /// Attempts by anyone: Onus, a layer below it, the application's own loop.
    pub attempts: u32,
    /// Attempts sent through this host.
    pub sent: u32,
    /// Whether an attempt is under way.
    pub in_attempt: bool,
    /// What the last ended attempt read.
    pub last: Option<CalleeClaim>,
    /// Whether an attempt got a reply.
    pub replied: bool,
    /// Whether an attempt was a probe.
    pub probed: bool,
    /// The first stop by rows 1, 4 and 8 that an observing caller passed over.
    pub shadow: Option<Stop>,
}

impl Tries {
    /// How the call stands for the claim: silence while an attempt is under way, else what the
    /// last attempt read; `None` where no attempt was made.
    #[must_use]
    pub const fn read(&self) -> Option<CalleeClaim> {
        if self.in_attempt { Some(CalleeClaim::Silent) } else { self.last }
    }

    /// The ending that the claim sees: the shadow stop of an observing caller before the real one.
    #[must_use]
    pub fn ending(&self, stop: Stop) -> Ending {
        Ending::Stopped(self.shadow.unwrap_or(stop))
    }

    /// Whether the retry criteria were met by this ending.
    #[must_use]
    pub const fn criteria_met(&self, ending: Ending) -> bool {
        criteria_met(self.attempts, ending)
    }
}

/// A failed attempt, as the host saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What went wrong.
    pub error: CallError,
    /// The claim on the reply, if there was one.
    pub claim: Option<Claim>,
    /// Which attempt the callee saw, as its reply says.
    pub attempt: Option<u32>,
    /// Whether the callee pushed back.
    pub pushback: Pushback,
    /// Whether the request can be sent again and no response has been passed on.
    pub replayable: bool,
    /// Whether the request's own body broke while it was sent.
    pub body_broke: bool,
}

impl Failure {
    /// Whether this says anything of the callee. Without a reply to a request that broke on this
    /// side it does not: the call ends without an outcome, as if it were dropped (drop-6).
    #[must_use]
    pub const fn tells_of_callee(&self) -> bool {
        self.error.is_reply() || !self.body_broke
    }
}

/// What the callee said about being called again: `grpc-retry-pushback-ms` or `Retry-After`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pushback {
    /// Nothing.
    #[default]
    None,
    /// Not at all: a negative or unparsable `grpc-retry-pushback-ms`.
    Refused,
    /// Not before this time has passed.
    After(Duration),
    /// Not at all, and beside it a wait, which counts where the refusal is Onus's own veto.
    RefusedAfter(Duration),
}
