//! Step vectors: what one service does, moment by moment, and what must be seen.

mod check;
mod convert;
mod expected;
mod failed;
mod look;
mod moment;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use onus_core::{EdgeClass, MIN_ATTEMPT_TIME};
use serde::Deserialize;

use crate::literal::{ErrorName, Span};
use crate::spelling;

pub(crate) use check::check;
pub use failed::{Draws, Failed, PushbackSetup, Then, Wait};
pub use look::{
    Brake, BrakeSeen, Criteria, Ends, Gate, Judge, Load, Lot, ShieldSetup, Switch, Tokens,
};
pub use moment::{
    Abandoned, Answer, Arrive, Because, Call, Handler, Lesson, Method, NotSent, Ok, Repeat, Sent,
    Step,
};

/// One service, its edges, and a sequence of moments with what must be seen at each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StepVector {
    /// What the vector shows; unique among all vectors.
    pub name: String,
    /// The sentences of the protocol that the vector breaks with.
    pub cites: Vec<String>,
    /// Why the vector is there, where the name does not say it.
    #[serde(default)]
    pub about: Option<String>,
    /// The service.
    #[serde(default)]
    pub service: Service,
    /// Its edges by callee.
    #[serde(default)]
    pub edges: BTreeMap<String, Edge>,
    /// The moments, in their order.
    pub steps: Vec<Step>,
}

/// How the service is set up.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Service {
    /// How far ownership reaches.
    pub mode: ModeName,
    /// In mode enforce: percent of the request trees.
    pub share: u8,
    /// The setting `silent-claims`.
    pub silent_claims: bool,
}

impl Default for Service {
    /// Enforcing for every request: what vectors are mostly about.
    fn default() -> Self {
        Self { mode: ModeName::Enforce, share: 100, silent_claims: false }
    }
}

/// A mode without its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeName {
    /// Ownership neither sends nor reads.
    Off,
    /// Claims are sent and read, and stop nothing.
    Observe,
    /// Claims decide.
    Enforce,
}

/// How an edge is set up. Without `attempts` nothing is retried, without `budget` nothing limits
/// the retries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Edge {
    /// The policy's attempts; fewer than two are no policy.
    pub attempts: u32,
    /// The errors that the policy covers; every failure unless given.
    pub errors: Option<Vec<ErrorName>>,
    /// Whether the policy covers unsafe HTTP methods.
    pub unsafe_methods: bool,
    /// The class that the service holds of the edge.
    #[serde(deserialize_with = "spelling::one")]
    pub class: EdgeClass,
    /// Whether the callee is inside the trust boundary.
    pub trusted: bool,
    /// The retry budget; no limit unless given.
    pub budget: Option<Budget>,
    /// Whether the efficacy gate limits retries.
    pub gate: bool,
    /// Whether suppressed retries are probed.
    pub probes: bool,
    /// Whether the brake acts, and does not only tell.
    pub brake_acts: bool,
    /// The time that an attempt is assumed to need.
    pub min_attempt_time: Span,
    /// The waits before retries.
    pub backoff: BackoffSetup,
    /// Retries declared for a layer below.
    pub declared: Option<Declared>,
}

impl Default for Edge {
    fn default() -> Self {
        Self {
            attempts: 0,
            errors: None,
            unsafe_methods: false,
            class: EdgeClass::Unknown,
            trusted: true,
            budget: None,
            gate: false,
            probes: false,
            brake_acts: false,
            min_attempt_time: Span(MIN_ATTEMPT_TIME),
            backoff: BackoffSetup::default(),
            declared: None,
        }
    }
}

/// A retry budget; what is left out is as in the preset `articles`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Budget {
    /// Retries per hundred deposits.
    pub percent: u32,
    /// What fills the bucket.
    pub deposit: DepositName,
    /// The floor.
    pub min_per_second: u32,
    /// How long a deposit counts, in seconds.
    pub ttl: NonZeroU32,
}

impl Default for Budget {
    fn default() -> Self {
        let ttl = NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN);
        Self { percent: 10, deposit: DepositName::Request, min_per_second: 1, ttl }
    }
}

/// What fills a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DepositName {
    /// Each original call.
    Request,
    /// Each logical call that ended ok.
    Success,
}

/// The waits before retries.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BackoffSetup {
    /// The cap of the first wait.
    pub base: Span,
    /// The cap of every wait.
    pub max: Span,
}

impl Default for BackoffSetup {
    fn default() -> Self {
        let millis = |ms| Span(std::time::Duration::from_millis(ms));
        Self { base: millis(25), max: millis(250) }
    }
}

/// Retries declared for a layer below.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Declared {
    /// The attempts it makes.
    pub attempts: u32,
    /// The errors it retries; every failure unless given.
    #[serde(default)]
    pub errors: Option<Vec<ErrorName>>,
}
