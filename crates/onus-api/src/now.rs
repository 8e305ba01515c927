//! How a mesh is at this moment, for the first minute of an incident.

use serde::{Deserialize, Serialize};

use crate::counts::{EdgeCounts, ProcedureCounts};
use crate::report::{EdgePolicyFacts, ServiceFacts};

/// How a mesh, or what one process sees of it, is at this moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// When it was taken, in milliseconds since 1970.
    pub at: u64,
    /// For how long the counts were counted, in seconds.
    pub seconds: f64,
    /// The services that report.
    pub services: Vec<ServiceNow>,
    /// The calls between services, all procedures together.
    pub edges: Vec<EdgeNow>,
    /// What is not in these figures, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The analyses that have the callers which are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// A service, all processes and procedures together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServiceNow {
    /// Its name.
    pub service: String,
    /// How many of its processes have reported lately.
    pub instances: u64,
    /// What it is doing, by the process that reported last.
    pub facts: ServiceFacts,
    /// What was counted.
    pub counts: ProcedureCounts,
    /// Since when it claims errors as its own, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_since: Option<u64>,
    /// When it was last heard of, in milliseconds since 1970.
    pub seen: u64,
}

/// The calls of one service to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EdgeNow {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// What was counted.
    pub counts: EdgeCounts,
    /// The retries that may be made, by the procedure with most of them.
    pub policy: EdgePolicyFacts,
    /// Since when calls fail, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<u64>,
}

impl Snapshot {
    /// What was counted since an earlier snapshot of the same process.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        self.seconds = self.at.saturating_sub(before.at) as f64 / 1000.0;
        for service in &mut self.services {
            let same = |it: &&ServiceNow| it.service == service.service;
            if let Some(before) = before.services.iter().find(same) {
                service.counts = service.counts.since(before.counts);
            }
        }
        for edge in &mut self.edges {
            let same = |it: &&EdgeNow| it.caller == edge.caller && it.callee == edge.callee;
            if let Some(before) = before.edges.iter().find(same) {
                edge.counts = edge.counts.since(before.counts);
            }
        }
        self
    }

    /// This and what another process has seen in the same time.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.schema_version = self.schema_version.max(other.schema_version);
        self.at = self.at.max(other.at);
        self.seconds = self.seconds.max(other.seconds);
        self.missing.extend(other.missing);
        for service in other.services {
            match self.services.iter_mut().find(|it| it.service == service.service) {
                Some(own) => own.add(service),
                None => self.services.push(service),
            }
        }
        for edge in other.edges {
            let same = |it: &&mut EdgeNow| it.caller == edge.caller && it.callee == edge.callee;
            match self.edges.iter_mut().find(same) {
                Some(own) => own.add(&edge),
                None => self.edges.push(edge),
            }
        }
        self
    }
}

impl ServiceNow {
    /// Takes in another process, or another procedure, of the service.
    pub fn add(&mut self, other: Self) {
        self.instances += other.instances;
        self.counts = self.counts.plus(other.counts);
        self.own_since = earlier(self.own_since, other.own_since);
        if other.seen > self.seen {
            self.seen = other.seen;
            self.facts = other.facts;
        }
    }
}

impl EdgeNow {
    /// Takes in another process, or another procedure, of the same two services.
    pub fn add(&mut self, other: &Self) {
        self.counts = self.counts.plus(other.counts);
        self.failing_since = earlier(self.failing_since, other.failing_since);
        let (one, two) = (&self.policy, &other.policy);
        let balance = [one.budget_balance, two.budget_balance].into_iter().flatten().min();
        let foreign_retries = one.foreign_retries || two.foreign_retries;
        let most = if two.attempts > one.attempts { two } else { one };
        self.policy = EdgePolicyFacts { budget_balance: balance, foreign_retries, ..*most };
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().min()
}
