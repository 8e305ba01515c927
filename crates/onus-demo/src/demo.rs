//! The demo: a chain of seven services, one of them broken, under five retry policies.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::{DemoError, Misuse};
use crate::fault::{Fault, What, When};
use crate::key::Key;
use crate::load::Report;
use crate::node::{Node, PerNode};
use crate::policy::Policy;
use crate::protocol::Protocol;
use crate::sidecars::Sidecars;
use crate::topology::{Coverage, Topology};

/// What is to be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demo {
    /// Requests that a client sends to A, for each policy.
    pub requests: u64,
    /// The service that is broken. It calls its callees before it fails.
    pub fail: Node,
    /// The share of its requests that the broken service fails.
    pub failure_rate: f64,
    /// How many of the hundred keys that requests have are bad; `None` if keys do not matter. The
    /// broken service then fails the requests with a bad key, those and no others.
    pub bad_keys: Option<u32>,
    /// A service whose calls cannot be tied to what it serves.
    pub context_loss: Option<Node>,
    /// A service without retries.
    pub no_retries: Option<Node>,
    /// A service without Onus, which retries all the same.
    pub no_claims: Option<Node>,
    /// A service with an operator's shield.
    pub shield: Option<Node>,
    /// Whether the broken service never answers, instead of failing; every service above it
    /// times out before its callee can answer.
    pub hang: bool,
    /// Whether ownership only observes.
    pub observe: bool,
    /// How the services talk.
    pub protocol: Protocol,
    /// How long the clients wait for a reply where the broken service never answers: long enough
    /// that an attempt has always reached its callee, on a busy machine too.
    pub hang_timeout: Duration,
    /// How many files the process may have open; they limit how many requests run at a time.
    pub files: u64,
}

/// What came of one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The policy.
    pub policy: Policy,
    /// The requests that each service has handled.
    pub handled: PerNode<u64>,
    /// What they should be, where a formula or a vector says so.
    pub expected: Option<PerNode<u64>>,
    /// The requests with a bad key among them, where some keys are bad.
    pub bad_keys: Option<BadKeys>,
    /// What the client saw.
    pub report: Report,
}

/// The requests with a bad key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKeys {
    /// Those that each service has handled.
    pub handled: PerNode<u64>,
    /// What they should be, where a formula or a vector says so.
    pub expected: Option<PerNode<u64>>,
}

impl Default for Demo {
    fn default() -> Self {
        Self {
            requests: 1000,
            fail: Node::D,
            failure_rate: 1.0,
            bad_keys: None,
            context_loss: None,
            no_retries: None,
            no_claims: None,
            shield: None,
            hang: false,
            observe: false,
            protocol: Protocol::default(),
            hang_timeout: Duration::from_millis(400),
            files: 1024,
        }
    }
}

impl Demo {
    /// More would take hours to say the same.
    pub const REQUESTS_MAX: u64 = 1_000_000;

    /// All of them.
    pub const BAD_KEYS_MAX: u32 = Key::COUNT as u32;

    /// Finds values out of range and wishes that exclude each other.
    ///
    /// # Errors
    ///
    /// The first of them, with what would be right.
    pub fn check(&self) -> Result<(), Misuse> {
        if !(1..=Self::REQUESTS_MAX).contains(&self.requests) {
            return Err(Misuse::Requests(self.requests));
        }
        if !(0.0..=1.0).contains(&self.failure_rate) {
            return Err(Misuse::FailureRate(self.failure_rate));
        }
        if let Some(bad_keys) = self.bad_keys {
            if !(1..=Self::BAD_KEYS_MAX).contains(&bad_keys) {
                return Err(Misuse::BadKeys(bad_keys));
            }
            if self.hang || self.failure_rate < 1.0 {
                return Err(Misuse::BadKeysBeside(self.fail));
            }
        }
        if self.hang && self.failure_rate < 1.0 {
            return Err(Misuse::HangAtRate(self.fail));
        }
        if self.hang && self.shield.is_some() {
            return Err(Misuse::HangBehindShield(self.fail));
        }
        if let Some(node) = self.no_claims {
            if self.shield == Some(node) {
                return Err(Misuse::ShieldWithoutOnus(node));
            }
            if self.context_loss == Some(node) {
                return Err(Misuse::ContextWithoutOnus(node));
            }
        }
        match [self.context_loss, self.no_retries].contains(&Some(Node::LAST)) {
            true => Err(Misuse::NoCalls(Node::LAST)),
            false => Ok(()),
        }
    }

    /// Runs `policy` on services of its own.
    ///
    /// # Errors
    ///
    /// What [`Self::check`] finds, or what keeps the services from starting.
    pub async fn run(&self, policy: Policy) -> Result<Run, DemoError> {
        self.check()?;
        let cluster = Cluster::start(&self.topology(policy)).await?;
        self.run_on(cluster, policy).await
    }

    /// Runs `policy` on services of its own that have no layers, with a sidecar beside each.
    ///
    /// # Errors
    ///
    /// What [`Self::check`] finds, or what keeps the services or the sidecars from starting.
    pub async fn run_beside(
        &self,
        policy: Policy,
        sidecars: &mut impl Sidecars,
    ) -> Result<Run, DemoError> {
        self.check()?;
        let cluster = Cluster::start_beside(&self.topology(policy), sidecars).await?;
        self.run_on(cluster, policy).await
    }

    async fn run_on(&self, cluster: Cluster, policy: Policy) -> Result<Run, DemoError> {
        let report = cluster.send(self.load(policy)).await?;
        let mut handled = PerNode::default();
        for (node, count) in Node::ALL.into_iter().zip(cluster.counts().await?) {
            handled[node] = count;
        }
        let bad_keys = match self.bad_keys {
            Some(count) => Some(self.with_bad_keys(policy, &cluster, count as usize).await?),
            None => None,
        };
        Ok(Run { policy, handled, expected: self.expected(policy), bad_keys, report })
    }

    async fn with_bad_keys(
        &self,
        policy: Policy,
        cluster: &Cluster,
        bad_keys: usize,
    ) -> Result<BadKeys, DemoError> {
        let mut handled = PerNode::default();
        for (node, counts) in Node::ALL.into_iter().zip(cluster.counts_by_key().await?) {
            handled[node] = counts.iter().take(bad_keys).sum();
        }
        Ok(BadKeys { handled, expected: self.expected_with_bad_keys(policy) })
    }

    /// The services under `policy`.
    #[must_use]
    pub fn topology(&self, policy: Policy) -> Topology {
        let mut topology = Topology::chain(Node::ALL.map(Node::as_str));
        topology.protocol = self.protocol;
        for (node, service) in Node::ALL.into_iter().zip(&mut topology.services) {
            service.mode = policy.mode(self.observe);
            service.detached = self.hang;
            service.shield = self.shield == Some(node);
            if self.context_loss == Some(node) {
                service.coverage = Coverage::ContextLost;
            } else if self.no_claims == Some(node) {
                service.coverage = Coverage::NonCooperative;
            }
            if node == self.fail {
                service.faults.push(self.fault());
            }
            for callee in &mut service.callees {
                callee.attempts = if self.no_retries == Some(node) { 1 } else { policy.attempts() };
                callee.budget_percent = policy.budget_percent();
                callee.client_timeout = self.hang.then_some(self.hang_timeout);
            }
        }
        topology
    }

    /// What is wrong with the broken service.
    fn fault(&self) -> Fault {
        match self.bad_keys {
            _ if self.hang => Fault::always(What::Hangs),
            Some(bad_keys) => Fault { what: What::Fails, when: When::Keys(bad_keys.into()) },
            None => Fault { what: What::Fails, when: When::Share(self.failure_rate) },
        }
    }

    /// How many things are out of the ordinary in the services around the broken one.
    pub(crate) fn variant_count(&self) -> usize {
        let nodes = [self.context_loss, self.no_retries, self.no_claims, self.shield];
        nodes.into_iter().flatten().count() + usize::from(self.observe)
    }
}
