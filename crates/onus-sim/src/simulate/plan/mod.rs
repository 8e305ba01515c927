//! A scenario under one policy, ready to run: names are numbers, and every setting is in place.

mod build;
mod faults;
mod links;
mod services;

use std::ops::Range;

use onus_core::{Arm, EdgeClass, EdgePolicy};

pub(crate) use build::{setting, under};
pub(crate) use faults::{FaultPlan, What};

use super::policy::{Kind, Policy};
use super::quantity::Latency;
use super::scenario::{Balancing, RetriesBy};

/// All that a run needs to know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) services: Vec<ServicePlan>,
    pub(crate) edges: Vec<EdgePlan>,
    /// Entry services with the shares of the traffic up to and with them.
    pub(crate) entries: Vec<(u32, f64)>,
    pub(crate) rate: f64,
    pub(crate) until: Until,
    pub(crate) bad_keys: f64,
    pub(crate) depth_max: u16,
    pub(crate) deadlines: bool,
    pub(crate) cancellation: bool,
    pub(crate) waits: bool,
    pub(crate) balancing: Balancing,
    /// What changes on the way, in order.
    pub(crate) changes: Vec<(u64, Change)>,
    /// The services whose load is compared.
    pub(crate) focus: Vec<u32>,
    /// When the load is compared, if not all the time.
    pub(crate) outage: Option<(u64, u64)>,
    pub(crate) policy: Policy,
}

/// When arrivals end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// After so many requests.
    Requests(u64),
    /// After so many nanoseconds.
    Nanos(u64),
}

/// Something that changes on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    /// The workers of each instance.
    Workers { service: u32, workers: u32 },
    /// Whether callers survive the failure of an edge.
    FailOpen { edge: u32, fail_open: bool },
    /// What callers hold of an edge.
    Held { edge: u32, held: EdgeClass },
}

/// A service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServicePlan {
    pub(crate) name: String,
    pub(crate) depth: u16,
    pub(crate) instances: u32,
    /// The number of the first instance among all of them.
    pub(crate) first_instance: u32,
    pub(crate) workers: Option<u32>,
    pub(crate) queue: u32,
    pub(crate) work: Latency,
    pub(crate) timeout: Option<u64>,
    pub(crate) sheds_with_pushback: bool,
    /// Ranges of edges that are called at once, in their order.
    pub(crate) steps: Vec<Range<u32>>,
    pub(crate) faults: Vec<FaultPlan>,
    pub(crate) arm: Arm,
    pub(crate) onus: bool,
    pub(crate) context_lost: bool,
    pub(crate) silent_claims: bool,
    pub(crate) shield: bool,
    pub(crate) retries: RetriesBy,
    pub(crate) tries: u32,
    pub(crate) drops: bool,
}

/// An edge.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EdgePlan {
    pub(crate) to: u32,
    pub(crate) calls: f64,
    pub(crate) timeout: Option<u64>,
    pub(crate) fail_open: bool,
    pub(crate) held: EdgeClass,
    pub(crate) replayable: bool,
    /// Whether the policy retries calls of this edge at all.
    pub(crate) retried: bool,
    /// The attempts of a layer below.
    pub(crate) layer_attempts: u32,
    pub(crate) policy: EdgePolicy,
    /// The number of the first caller instance's memory among all of them.
    pub(crate) first_memory: u32,
    /// Attempts and budget that the scenario sets for this edge alone.
    pub(crate) own_attempts: Option<u32>,
    pub(crate) own_budget_percent: Option<u32>,
}

impl Plan {
    /// Whether the shipped code decides, and its claims and marks travel.
    pub(crate) const fn shipped(&self) -> Option<&super::policy::Shipped> {
        match &self.policy.kind {
            Kind::Shipped(shipped) => Some(shipped),
            Kind::Rival(_) => None,
        }
    }
}
