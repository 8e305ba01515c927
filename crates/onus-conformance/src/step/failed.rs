//! The end of an attempt, and the decision that follows.

use onus_core::{CalleeClaim, Claim, Stop};
use serde::Deserialize;

use super::moment::yes;
use crate::literal::{ErrorName, Span};
use crate::spelling::{self, Spelt};

/// An attempt fails.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Failed {
    /// The call.
    #[serde(default)]
    pub call: Option<String>,
    /// How it fails; status 503 unless given.
    #[serde(default)]
    pub error: Option<ErrorName>,
    /// The claim on the reply.
    #[serde(default, deserialize_with = "spelling::maybe")]
    pub claim: Option<Claim>,
    /// The attempt that the claim names.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Whether the callee pushes back.
    #[serde(default)]
    pub pushback: PushbackSetup,
    /// Whether the request can be sent again and nothing of a response was passed on.
    #[serde(default = "yes")]
    pub replayable: bool,
    /// The random numbers of the decision.
    #[serde(default)]
    pub draws: Draws,
    /// Must be seen: the decision.
    #[serde(deserialize_with = "spelling::one")]
    pub then: Then,
    /// Must be seen: what the caller reads.
    #[serde(default, deserialize_with = "spelling::maybe")]
    pub reads: Option<CalleeClaim>,
    /// Must be seen of an observing caller: where enforcing would have stopped; `none` for
    /// nowhere.
    #[serde(default, deserialize_with = "spelling::maybe")]
    pub shadow: Option<Option<Stop>>,
    /// Must be seen: the wait before the retry.
    #[serde(default)]
    pub wait: Option<Wait>,
}

/// How a callee pushes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushbackSetup {
    /// It does not.
    #[default]
    None,
    /// A negative or unparsable `grpc-retry-pushback-ms`.
    Refused,
    /// `Retry-After` or a positive `grpc-retry-pushback-ms`.
    After(Span),
}

/// The random numbers of one decision, in permille: an event of probability p permille happens
/// where the number is below p.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Draws {
    /// Whether a narrow gate lets the retry pass.
    pub gate: u16,
    /// Whether a suppressed retry is probed.
    pub probe: u16,
    /// The share of the backoff's cap that is waited.
    pub jitter: u16,
}

impl Default for Draws {
    /// A gate that lets pass, no probe, the longest wait.
    fn default() -> Self {
        Self { gate: 0, probe: 999, jitter: 1000 }
    }
}

/// The decision after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Send again.
    Retry,
    /// Send again although the retry is suppressed.
    Probe,
    /// The call has failed for good.
    Stop(Stop),
}

impl Then {
    /// The word of the vectors.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Probe => "probe",
            Self::Stop(stop) => stop.as_str(),
        }
    }
}

impl Spelt for Then {
    const WHAT: &'static str = "decision";

    fn all() -> Vec<(&'static str, Self)> {
        let stops = Stop::ALL.into_iter().map(Self::Stop);
        [Self::Retry, Self::Probe].into_iter().chain(stops).map(|t| (t.as_str(), t)).collect()
    }
}

/// A wait, from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Wait {
    /// The shortest.
    pub min: Span,
    /// The longest.
    pub max: Span,
}
