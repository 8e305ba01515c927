//! What a host of the protocol implements to run the vectors, and what it reports.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::discriminant;
use std::time::Duration;

use onus_core::{Arm, CalleeClaim, Claim, ClaimReason, EdgeOutcome, Stop};

use crate::spelling;
use crate::step::{BrakeSeen, StepVector, Then};
use crate::tree::{TreeAnswer, TreeVector};

/// An implementation of the protocol that can be put through the vectors: the core, layers over
/// mock services, servers on sockets, a proxy, the filters of another proxy.
///
/// A host that cannot act out a vector says so; nothing is left out in silence.
pub trait Host {
    /// The host's name in reports.
    fn name(&self) -> &str;

    /// Acts out the moments of one service: one observation for each step, in their order.
    ///
    /// # Errors
    ///
    /// Why the host cannot act the vector out.
    fn run_steps(&mut self, vector: &StepVector) -> Result<Vec<Observation>, Unsupported>;

    /// Acts out a tree of services.
    ///
    /// # Errors
    ///
    /// Why the host cannot act the vector out.
    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported>;
}

/// Why a host cannot act a vector out, as a fragment: "has no clock to step back".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl<T: Into<String>> From<T> for Unsupported {
    fn from(reason: T) -> Self {
        Self(reason.into())
    }
}

/// What was seen in a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The requests that each node handled, retries included.
    pub requests: BTreeMap<String, u64>,
    /// What the client outside read in the last run; `None` where the host cannot see it.
    pub answer: Option<TreeAnswer>,
}

/// What was seen at one step; empty where there is nothing to see or the host cannot see it.
///
/// A fact that a vector asks for and the host does not report is listed as unseen. More facts
/// than asked for do no harm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation(pub Vec<Fact>);

impl Observation {
    /// Nothing was seen.
    #[must_use]
    pub const fn nothing() -> Self {
        Self(Vec::new())
    }
}

impl<const N: usize> From<[Fact; N]> for Observation {
    fn from(facts: [Fact; N]) -> Self {
        Self(facts.into())
    }
}

/// One thing that can be seen at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The arm of a request or call.
    Arm(Arm),
    /// Whether an attempt carries the mark.
    Mark(bool),
    /// The time that an attempt allows its callee.
    Allows(Duration),
    /// The decision after a failed attempt, or on a call that is not sent.
    Then(Then),
    /// What the caller read of a failed attempt.
    Reads(CalleeClaim),
    /// Where enforcing would have stopped.
    Shadow(Option<Stop>),
    /// The wait before a retry.
    Wait(Duration),
    /// The claim on an answer.
    Claim(Option<Claim>),
    /// The reason of the claim.
    Reason(ClaimReason),
    /// The call that decided on the claim, or `self`.
    Deciding(String),
    /// Whether the vetoes go with an answer.
    Vetoes(bool),
    /// Whether a request counts as clean.
    Clean(bool),
    /// What a request teaches about edges, by callee.
    Teaches(BTreeMap<String, EdgeOutcome>),
    /// How many calls of a load ended as asked.
    Loaded(u32),
    /// Whole tokens in a budget.
    Tokens(u64),
    /// The share of an edge's retries that succeed, in permille.
    GateShare(u32),
    /// The share of an edge's retries that pass, in permille.
    GatePasses(u32),
    /// What a brake says.
    BrakeEvent(BrakeSeen),
    /// How often an edge's enforce share was halved.
    Halvings(u8),
    /// The lot of a request tree.
    Lot(u16),
    /// Whether an answer is a failure of the callee.
    Failure(bool),
    /// Whether the retry criteria are met.
    Met(bool),
}

impl Fact {
    const fn word(&self) -> &'static str {
        match self {
            Self::Arm(_) => "arm",
            Self::Mark(_) => "mark",
            Self::Allows(_) => "allows",
            Self::Then(_) => "then",
            Self::Reads(_) => "reads",
            Self::Shadow(_) => "shadow",
            Self::Wait(_) => "wait",
            Self::Claim(_) => "claim",
            Self::Reason(_) => "reason",
            Self::Deciding(_) => "deciding",
            Self::Vetoes(_) => "vetoes",
            Self::Clean(_) => "clean",
            Self::Teaches(_) => "teaches",
            Self::Loaded(_) => "calls",
            Self::Tokens(_) => "whole",
            Self::GateShare(_) => "share",
            Self::GatePasses(_) => "passes",
            Self::BrakeEvent(_) => "event",
            Self::Halvings(_) => "halvings",
            Self::Lot(_) => "number",
            Self::Failure(_) => "failure",
            Self::Met(_) => "met",
        }
    }
}

impl fmt::Display for Fact {
    /// The fact as a vector spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.word())?;
        match self {
            Self::Arm(arm) => f.write_str(arm.as_str()),
            Self::Mark(is)
            | Self::Vetoes(is)
            | Self::Clean(is)
            | Self::Failure(is)
            | Self::Met(is) => write!(f, "{is}"),
            Self::Allows(span) | Self::Wait(span) => write!(f, "{span:?}"),
            Self::Then(then) => f.write_str(then.as_str()),
            Self::Reads(read) => f.write_str(read.as_str()),
            Self::Shadow(stop) => f.write_str(stop.map_or("none", Stop::as_str)),
            Self::Claim(claim) => f.write_str(spelling::sent_claim(*claim)),
            Self::Reason(reason) => f.write_str(reason.as_str()),
            Self::Deciding(call) => f.write_str(call),
            Self::Teaches(lessons) => {
                let lesson = |(edge, outcome): (&String, &EdgeOutcome)| {
                    format!("{edge}: {}", spelling::edge_outcome(*outcome))
                };
                let lessons: Vec<_> = lessons.iter().map(lesson).collect();
                write!(f, "{{{}}}", lessons.join(", "))
            }
            Self::Tokens(number) => write!(f, "{number}"),
            Self::Loaded(number) | Self::GateShare(number) | Self::GatePasses(number) => {
                write!(f, "{number}")
            }
            Self::BrakeEvent(event) => f.write_str(event.as_str()),
            Self::Halvings(number) => write!(f, "{number}"),
            Self::Lot(number) => write!(f, "{number}"),
        }
    }
}

/// What a step asks to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Exactly this.
    Is(Fact),
    /// A wait between these, both included.
    WaitWithin(Duration, Duration),
}

impl Expected {
    /// Whether `seen` shows it; `None` where it does not show at all.
    #[must_use]
    pub fn is_met(&self, seen: &Observation) -> Option<bool> {
        match self {
            Self::Is(fact) => {
                let mut same = seen.0.iter().filter(|of| discriminant(*of) == discriminant(fact));
                same.next().map(|seen| seen == fact)
            }
            Self::WaitWithin(min, max) => seen.0.iter().find_map(|fact| {
                let Fact::Wait(wait) = fact else { return None };
                Some((min..=max).contains(&wait))
            }),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(fact) => write!(f, "{fact}"),
            Self::WaitWithin(min, max) => write!(f, "wait: {min:?} to {max:?}"),
        }
    }
}
