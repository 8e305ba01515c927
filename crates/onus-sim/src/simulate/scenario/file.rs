//! A scenario as it is typed.

use std::collections::BTreeMap;

use onus_core::EdgeClass;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::faults::FaultFile;
use super::policies::PolicyFile;
use super::sweep::SweepFile;
use super::topology::TopologyFile;
use crate::simulate::quantity::{Latency, Probability, Span};

/// A scenario: who calls whom, what goes wrong, and which policies are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ScenarioFile {
    /// What the scenario shows, for people.
    #[serde(default)]
    pub(crate) about: String,
    /// How often each policy is run, each time with other luck.
    #[serde(default = "one")]
    pub(crate) seeds: u32,
    pub(crate) arrivals: ArrivalsFile,
    pub(crate) topology: Spanned<TopologyFile>,
    /// Which requests have a bad key: this share.
    #[serde(default)]
    pub(crate) bad_keys: Probability,
    /// The attempts of policies that do not say otherwise.
    #[serde(default = "two")]
    pub(crate) attempts: u32,
    /// The caller's timeout of each attempt on edges that do not say otherwise.
    #[serde(default)]
    pub(crate) timeout: Option<Span>,
    /// Whether callers tell callees how much time is left.
    #[serde(default)]
    pub(crate) deadlines: bool,
    /// Whether a request whose caller has given up is dropped, with all that it waits for.
    #[serde(default)]
    pub(crate) cancellation: bool,
    /// Whether retries wait as shipped; if not, they are sent at once.
    #[serde(default)]
    pub(crate) backoff: BackoffFile,
    /// How the instances of services share load.
    #[serde(default)]
    pub(crate) balancing: Balancing,
    /// What holds for services that are not in `services`.
    #[serde(default)]
    pub(crate) service: ServiceFile,
    #[serde(default)]
    pub(crate) services: BTreeMap<String, Spanned<ServiceFile>>,
    #[serde(default)]
    pub(crate) edges: Vec<EdgeFile>,
    #[serde(default)]
    pub(crate) faults: Vec<FaultFile>,
    /// The services whose load is compared; those with faults unless given.
    #[serde(default)]
    pub(crate) focus: Vec<Spanned<String>>,
    pub(crate) policies: Vec<PolicyFile>,
    /// The policy that all are compared with: what the others would have sent under it.
    #[serde(default)]
    pub(crate) against: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) sweep: Option<SweepFile>,
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

/// Requests from outside.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ArrivalsFile {
    /// How many; given instead of `for`.
    #[serde(default)]
    pub(crate) requests: Option<u64>,
    /// For how long; given instead of `requests`.
    #[serde(default, rename = "for")]
    pub(crate) lasts: Option<Span>,
    /// Requests per second, by chance (Poisson).
    #[serde(default = "thousand")]
    pub(crate) rate: Spanned<f64>,
}

fn thousand() -> Spanned<f64> {
    Spanned::new(1000.0, serde_saphyr::Location::UNKNOWN, serde_saphyr::Location::UNKNOWN)
}

/// Whether retries wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BackoffFile {
    /// As shipped.
    #[default]
    Default,
    /// Retries are sent at once.
    None,
}

/// Which instance gets a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Balancing {
    /// By chance.
    #[default]
    Random,
    /// One after another.
    RoundRobin,
    /// The one that serves the fewest.
    LeastBusy,
}

/// A service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct ServiceFile {
    /// Unlimited unless given.
    pub(crate) workers: Option<u32>,
    /// How many requests wait for a worker; unlimited unless given.
    pub(crate) queue: Option<u32>,
    /// The service's own work, before it calls others.
    pub(crate) work: Option<Latency>,
    /// When the service gives a request up by itself.
    pub(crate) timeout: Option<Span>,
    /// One unless given.
    pub(crate) instances: Option<u32>,
    /// Whether it tells callers not to retry what it refuses.
    pub(crate) sheds_with_pushback: bool,
    /// Whether it calls all its callees at once.
    pub(crate) parallel: Option<bool>,
    /// Whether it has Onus, where the policy is one of Onus; it has unless given.
    pub(crate) onus: Option<bool>,
    pub(crate) mode: ModeFile,
    pub(crate) context_lost: bool,
    pub(crate) silent_claims: bool,
    pub(crate) shield: bool,
    /// Who makes its retries.
    pub(crate) retries: RetriesBy,
    /// How often the handler makes each call in a loop of its own.
    pub(crate) tries: Option<u32>,
    /// Whether the handler gives up a call that gets no answer, before anything else notices.
    pub(crate) drops: bool,
}

/// How far ownership reaches in a service, where the policy has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ModeFile {
    #[default]
    Enforce,
    Observe,
    Off,
}

/// Who makes the retries of a service's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RetriesBy {
    /// What the policy says.
    #[default]
    Policy,
    /// A layer below the service that retries every error.
    BlindLayer,
    /// A layer below the service that retries every error without a veto.
    ObedientLayer,
}

/// An edge that is not the ordinary one.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct EdgeFile {
    pub(crate) from: Spanned<String>,
    pub(crate) to: Spanned<String>,
    /// Calls per request of the caller; one unless given.
    #[serde(default)]
    pub(crate) calls: Option<Spanned<f64>>,
    #[serde(default)]
    pub(crate) timeout: Option<Span>,
    /// Whatever the policy says, where it allows retries at all.
    #[serde(default)]
    pub(crate) attempts: Option<u32>,
    /// The budget of this edge, without a floor, whatever the policy says.
    #[serde(default)]
    pub(crate) budget_percent: Option<u32>,
    /// Whether the caller survives the callee's failure.
    #[serde(default)]
    pub(crate) fail_open: bool,
    /// The class that the caller holds of the edge; the true one unless given.
    #[serde(default)]
    pub(crate) held: Option<ClassFile>,
    #[serde(default = "yes")]
    pub(crate) replayable: bool,
}

fn yes() -> bool {
    true
}

/// An edge class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClassFile {
    FailClose,
    FailOpen,
    Unknown,
}

impl From<ClassFile> for EdgeClass {
    fn from(class: ClassFile) -> Self {
        match class {
            ClassFile::FailClose => Self::FailClose,
            ClassFile::FailOpen => Self::FailOpen,
            ClassFile::Unknown => Self::Unknown,
        }
    }
}
