//! Moments that are no part of a request: switches, load, and looks at what an edge remembers.

use onus_core::Ending;
use serde::Deserialize;

use super::ModeName;
use crate::literal::{ErrorName, Span, TraceId};
use crate::spelling;

/// A shield is set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ShieldSetup {
    /// For how long; the protocol's default unless given.
    #[serde(rename = "for")]
    pub lasts: Option<Span>,
}

/// The mode is changed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Switch {
    /// The mode.
    pub mode: ModeName,
    /// In mode enforce: percent of the request trees; all unless given.
    #[serde(default)]
    pub share: Option<u8>,
}

/// Many calls of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Load {
    /// The edge.
    pub edge: String,
    /// How many calls.
    pub calls: u32,
    /// How each of them ends.
    pub ends: Ends,
}

/// How the calls of a load end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// At the first attempt, without an error.
    Ok,
    /// The first attempt fails without a claim, its retry succeeds.
    RetriedOk,
    /// The first attempt fails without a claim, and so does its retry.
    RetriedFailed,
    /// The first attempt fails unclaimed and is probed; the probe succeeds.
    ProbedOk,
    /// The first attempt fails unclaimed and is probed; the probe fails unclaimed.
    ProbedFailed,
}

/// A look at a budget.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tokens {
    /// The edge.
    pub edge: String,
    /// Must be seen: whole tokens that could be withdrawn.
    pub whole: u64,
}

/// A look at a gate.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Gate {
    /// The edge.
    pub edge: String,
    /// Must be seen: the share of retries that succeed, in permille.
    pub share: u32,
    /// Must be seen: the share of retries that pass, in permille.
    pub passes: u32,
}

/// A look at a brake.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Brake {
    /// The edge.
    pub edge: String,
    /// Must be seen: the last event since the last look.
    pub event: BrakeSeen,
    /// Must be seen: how often the edge's share was halved.
    pub halvings: u8,
}

/// An event of a brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BrakeSeen {
    /// None.
    None,
    /// Suppression is costly.
    Raised,
    /// The share was halved.
    Halved,
}

impl BrakeSeen {
    /// The word of the vectors.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Raised => "raised",
            Self::Halved => "halved",
        }
    }
}

/// The lot of a request tree.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Lot {
    /// The trace id.
    pub trace: TraceId,
    /// Must be seen: the lot, 0 to 9,999.
    pub number: u16,
}

/// An answer is judged.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Judge {
    /// The answer, or the lack of one.
    pub error: ErrorName,
    /// Must be seen: whether it is a failure of the callee.
    pub failure: bool,
}

/// The criteria after the final failure of a call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Criteria {
    /// Attempts by anyone.
    pub attempts: u32,
    /// How the call ended.
    #[serde(deserialize_with = "spelling::one")]
    pub ending: Ending,
    /// Must be seen: whether the criteria are met.
    pub met: bool,
}
