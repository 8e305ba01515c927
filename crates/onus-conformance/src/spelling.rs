//! The words of the vectors: values of the core as a YAML file spells them.

use onus_core::{Arm, CalleeClaim, Claim, ClaimReason, EdgeClass, EdgeOutcome, Ending, Stop};
use serde::de::{Deserialize, Deserializer, Error};

/// A value with one spelling.
pub(crate) trait Spelt: Sized + 'static {
    /// What the value is, for messages.
    const WHAT: &'static str;

    /// Every value with its spelling.
    fn all() -> Vec<(&'static str, Self)>;
}

/// Reads a [`Spelt`] value; for `deserialize_with`.
pub(crate) fn one<'de, D: Deserializer<'de>, T: Spelt>(deserializer: D) -> Result<T, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads a [`Spelt`] value that may be left out; for `deserialize_with` beside `default`.
pub(crate) fn maybe<'de, D: Deserializer<'de>, T: Spelt>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    one(deserializer).map(Some)
}

fn parse<T: Spelt>(text: &str) -> Result<T, String> {
    let mut all = T::all();
    let place = all.iter().position(|(spelling, _)| *spelling == text);
    place.map(|place| all.swap_remove(place).1).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|(spelling, _)| *spelling).collect();
        format!("`{text}` is no {}; one of {}", T::WHAT, known.join(", "))
    })
}

/// The spelling of an optional claim on an answer.
pub(crate) fn sent_claim(claim: Option<Claim>) -> &'static str {
    claim.map_or("none", |claim| CalleeClaim::Reply(claim).as_str())
}

/// The spelling of what a request teaches about an edge.
pub(crate) fn edge_outcome(outcome: EdgeOutcome) -> &'static str {
    match outcome {
        EdgeOutcome::Ok => "ok",
        EdgeOutcome::FailedAlone => "failed-alone",
        EdgeOutcome::FailedJointly => "failed-jointly",
    }
}

const CLAIMS: [Claim; 4] =
    [Claim::Claimed, Claim::ClaimedSilent, Claim::Unclaimed, Claim::UnclaimedShield];

impl Spelt for Claim {
    const WHAT: &'static str = "claim";

    fn all() -> Vec<(&'static str, Self)> {
        CLAIMS.map(|claim| (sent_claim(Some(claim)), claim)).into()
    }
}

impl Spelt for Option<Claim> {
    const WHAT: &'static str = "claim";

    fn all() -> Vec<(&'static str, Self)> {
        CLAIMS.map(Some).into_iter().chain([None]).map(|claim| (sent_claim(claim), claim)).collect()
    }
}

impl Spelt for CalleeClaim {
    const WHAT: &'static str = "value that a caller reads";

    fn all() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|read| (read.as_str(), read)).into()
    }
}

impl Spelt for ClaimReason {
    const WHAT: &'static str = "reason of a claim";

    fn all() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|reason| (reason.as_str(), reason)).into()
    }
}

impl Spelt for Stop {
    const WHAT: &'static str = "reason of a stop";

    fn all() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|stop| (stop.as_str(), stop)).into()
    }
}

impl Spelt for Option<Stop> {
    const WHAT: &'static str = "shadow stop";

    fn all() -> Vec<(&'static str, Self)> {
        let stops = Stop::ALL.map(|stop| (stop.as_str(), Some(stop)));
        stops.into_iter().chain([("none", None)]).collect()
    }
}

impl Spelt for Ending {
    const WHAT: &'static str = "ending of a call";

    fn all() -> Vec<(&'static str, Self)> {
        let stops = Stop::ALL.into_iter().map(Self::Stopped);
        stops.chain([Self::InFlight]).map(|ending| (ending.reason().as_str(), ending)).collect()
    }
}

impl Spelt for Arm {
    const WHAT: &'static str = "arm";

    fn all() -> Vec<(&'static str, Self)> {
        [Self::Off, Self::Observe, Self::Control, Self::Enforce]
            .map(|arm| (arm.as_str(), arm))
            .into()
    }
}

impl Spelt for EdgeClass {
    const WHAT: &'static str = "class of an edge";

    fn all() -> Vec<(&'static str, Self)> {
        [Self::FailClose, Self::FailOpen, Self::Unknown].map(|class| (class.as_str(), class)).into()
    }
}

impl Spelt for EdgeOutcome {
    const WHAT: &'static str = "lesson about an edge";

    fn all() -> Vec<(&'static str, Self)> {
        [Self::Ok, Self::FailedAlone, Self::FailedJointly]
            .map(|outcome| (edge_outcome(outcome), outcome))
            .into()
    }
}
