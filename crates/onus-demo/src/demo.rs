//! The demo: a chain of seven services, one of them broken, under five retry policies.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::{Contradiction, DemoError};
use crate::load::{Load, Report};
use crate::node::{Node, PerNode};
use crate::policy::Policy;
use crate::topology::{Coverage, Fault, Topology};

/// What is to be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demo {
    /// Requests that a client sends to A, for each policy.
    pub requests: u64,
    /// The service that is broken. It calls its callees before it fails.
    pub fail: Node,
    /// The share of its requests that the broken service fails.
    pub failure_rate: f64,
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
    /// What the client saw.
    pub report: Report,
}

impl Default for Demo {
    fn default() -> Self {
        Self {
            requests: 1000,
            fail: Node::D,
            failure_rate: 1.0,
            context_loss: None,
            no_retries: None,
            no_claims: None,
            shield: None,
            hang: false,
            observe: false,
        }
    }
}

impl Demo {
    /// More would take hours to say the same.
    pub const REQUESTS_MAX: u64 = 1_000_000;

    /// Finds values out of range and wishes that exclude each other.
    ///
    /// # Errors
    ///
    /// The first of them, with what would be right.
    pub fn check(&self) -> Result<(), DemoError> {
        if !(1..=Self::REQUESTS_MAX).contains(&self.requests) {
            return Err(DemoError::Requests { requests: self.requests });
        }
        if !(0.0..=1.0).contains(&self.failure_rate) {
            return Err(DemoError::FailureRate { rate: self.failure_rate });
        }
        let contradiction = match (self.shield, self.no_claims) {
            _ if self.hang && self.failure_rate < 1.0 => Contradiction::HangAtRate(self.fail),
            (Some(_), _) if self.hang => Contradiction::HangBehindShield(self.fail),
            (Some(node), Some(without)) if node == without => {
                Contradiction::ShieldWithoutOnus(node)
            }
            (_, Some(node)) if self.context_loss == Some(node) => {
                Contradiction::ContextWithoutOnus(node)
            }
            _ if [self.context_loss, self.no_retries].contains(&Some(Node::LAST)) => {
                Contradiction::NoCalls(Node::LAST)
            }
            (None | Some(_), None | Some(_)) => return Ok(()),
        };
        Err(contradiction.into())
    }

    /// Runs `policy` on services of its own.
    ///
    /// # Errors
    ///
    /// What [`Self::check`] finds, or what keeps the services from starting.
    pub async fn run(&self, policy: Policy) -> Result<Run, DemoError> {
        self.check()?;
        let cluster = Cluster::start(&self.topology(policy)).await?;
        let concurrency = if self.hang { CONCURRENCY_HANG } else { CONCURRENCY };
        let report = cluster.send(Load { requests: self.requests, concurrency }).await?;
        let mut handled = PerNode::default();
        for (node, count) in Node::ALL.into_iter().zip(cluster.counts().await?) {
            handled[node] = count;
        }
        Ok(Run { policy, handled, expected: self.expected(policy), report })
    }

    /// The services under `policy`.
    #[must_use]
    pub fn topology(&self, policy: Policy) -> Topology {
        let mut topology = Topology::chain(Node::ALL.map(Node::as_str));
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
                service.fault =
                    if self.hang { Fault::Hangs } else { Fault::Fails(self.failure_rate) };
            }
            for callee in &mut service.callees {
                callee.attempts = if self.no_retries == Some(node) { 1 } else { policy.attempts() };
                callee.budget_percent = policy.budget_percent();
                callee.per_try_timeout = self.hang.then_some(HANG_TIMEOUT);
            }
        }
        topology
    }

    /// How many things are out of the ordinary in the services around the broken one.
    pub(crate) fn variant_count(&self) -> usize {
        let nodes = [self.context_loss, self.no_retries, self.no_claims, self.shield];
        nodes.into_iter().flatten().count() + usize::from(self.observe)
    }
}

/// Enough to keep two cores busy, and few enough for the 256 files that some systems allow.
const CONCURRENCY: u64 = 16;

/// Requests that hang wait most of their time, so that more of them run at a time; each of them
/// holds up to 20 files, and a process commonly may have 1,024.
const CONCURRENCY_HANG: u64 = 40;

/// Long enough that every attempt has reached its callee on a busy machine.
const HANG_TIMEOUT: Duration = Duration::from_millis(200);
