//! The moments of a step vector. A field that says what must be seen may be left out: then
//! nothing is asked.

use std::collections::BTreeMap;

use onus_core::{Arm, Claim, ClaimReason, EdgeOutcome};
use serde::Deserialize;

use super::failed::Failed;
use super::look::{Brake, Criteria, Gate, Judge, Load, Lot, ShieldSetup, Switch, Tokens};
use crate::literal::{Span, TraceId};
use crate::spelling;

/// One moment. A call is named by `call`; the latest call that was started unless given.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The clock now reads this much since the start; it may step back.
    At(Span),
    /// A request arrives and becomes the request being served.
    Arrive(Arrive),
    /// The handler starts a logical call.
    Call(Call),
    /// An attempt of a call leaves.
    Sent(Sent),
    /// A call cannot be sent at all, and has failed.
    NotSent(NotSent),
    /// The attempt under way fails; after `ok`, the answer's body breaks.
    Failed(Failed),
    /// The attempt under way is answered without an error.
    Ok(Ok),
    /// The handler gives a call up.
    Abandoned(Abandoned),
    /// The application makes a failed or abandoned call once more.
    Repeat(Repeat),
    /// The handler answers, and the request being served is over.
    Answer(Answer),
    /// An operator sets a shield.
    Shield(ShieldSetup),
    /// An operator changes the mode.
    Switch(Switch),
    /// Many calls of one kind, each in a request of its own.
    Load(Load),
    /// How many tokens an edge's budget holds.
    Tokens(Tokens),
    /// How an edge's efficacy gate stands.
    Gate(Gate),
    /// What an edge's brake says since the last look.
    Brake(Brake),
    /// The lot of a request tree.
    Lot(Lot),
    /// Whether an answer is a failure of the callee.
    Judge(Judge),
    /// Whether the retry criteria are met.
    Criteria(Criteria),
}

impl Step {
    /// The word with which the step begins in a file.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::At(_) => "at",
            Self::Arrive(_) => "arrive",
            Self::Call(_) => "call",
            Self::Sent(_) => "sent",
            Self::NotSent(_) => "not-sent",
            Self::Failed(_) => "failed",
            Self::Ok(_) => "ok",
            Self::Abandoned(_) => "abandoned",
            Self::Repeat(_) => "repeat",
            Self::Answer(_) => "answer",
            Self::Shield(_) => "shield",
            Self::Switch(_) => "switch",
            Self::Load(_) => "load",
            Self::Tokens(_) => "tokens",
            Self::Gate(_) => "gate",
            Self::Brake(_) => "brake",
            Self::Lot(_) => "lot",
            Self::Judge(_) => "judge",
            Self::Criteria(_) => "criteria",
        }
    }
}

/// A request arrives.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Arrive {
    /// Whether it carries the mark.
    pub mark: bool,
    /// Its trace id.
    pub trace: Option<TraceId>,
    /// The time that it allows.
    pub deadline: Option<Span>,
    /// Must be seen: the arm of the request.
    #[serde(deserialize_with = "spelling::maybe")]
    pub arm: Option<Arm>,
}

/// A logical call starts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Call {
    /// The edge, by callee.
    pub edge: String,
    /// The call's name in later steps; the callee's unless given.
    #[serde(default, rename = "as")]
    pub name: Option<String>,
    /// What the request's method says about sending it twice.
    #[serde(default)]
    pub method: Method,
    /// The call's own overall deadline.
    #[serde(default)]
    pub within: Option<Span>,
    /// Whether the call can be tied to the request being served.
    #[serde(default = "yes")]
    pub tied: bool,
    /// Must be seen: the arm of the call.
    #[serde(default, deserialize_with = "spelling::maybe")]
    pub arm: Option<Arm>,
}

pub(super) fn yes() -> bool {
    true
}

impl Call {
    /// The call's name in later steps.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.edge)
    }
}

/// What a method says about sending a request twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// GET, HEAD, OPTIONS, TRACE.
    #[default]
    Safe,
    /// Any other HTTP method.
    Unsafe,
    /// A gRPC method.
    Grpc,
}

/// An attempt leaves.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Sent {
    /// The call.
    pub call: Option<String>,
    /// Must be seen: whether the attempt carries the mark.
    pub mark: Option<bool>,
    /// Must be seen: the time that the attempt allows its callee.
    pub allows: Option<Span>,
}

/// A call is not sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NotSent {
    /// The call.
    #[serde(default)]
    pub call: Option<String>,
    /// Why.
    pub because: Because,
}

/// Why a call is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// A breaker refuses it.
    Breaker,
    /// A local limit refuses it.
    Limit,
    /// Its deadline has passed; that the host sees this itself must be seen.
    Deadline,
}

/// A call is answered.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Ok {
    /// The call.
    pub call: Option<String>,
}

/// A call is given up.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Abandoned {
    /// The call.
    pub call: Option<String>,
}

/// A call is made once more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Repeat {
    /// The call.
    pub call: Option<String>,
}

/// The handler answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Answer {
    /// What it answers.
    pub handler: Handler,
    /// Must be seen: the claim; `none` for none.
    #[serde(deserialize_with = "spelling::maybe")]
    pub claim: Option<Option<Claim>>,
    /// Must be seen: the claim's reason.
    #[serde(deserialize_with = "spelling::maybe")]
    pub reason: Option<ClaimReason>,
    /// Must be seen: the call that decided; `self` for none.
    pub deciding: Option<String>,
    /// Must be seen: whether the vetoes are sent.
    pub vetoes: Option<bool>,
    /// Must be seen: whether the request counts as clean, no outbound having failed.
    pub clean: Option<bool>,
    /// Must be seen: what the request teaches about edges, by callee; an edge that is left out
    /// must teach nothing.
    pub teaches: Option<BTreeMap<String, Lesson>>,
}

/// What a request teaches about an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Lesson(#[serde(deserialize_with = "spelling::one")] pub EdgeOutcome);

/// What a handler answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Handler {
    /// An error of the service.
    #[default]
    Error,
    /// No error.
    Ok,
    /// Nothing: the request was cancelled.
    Cancelled,
}
