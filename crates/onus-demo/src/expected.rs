//! What each service should handle, from the formulas of the protocol.
//!
//! For a culprit that fails on every call the growth is that of protocol §12: walk the claim from
//! the culprit to the root and note which hops multiply. With no ownership all hops do, and the
//! products are R^d and (1 + B)^d; with ownership one does. Where every level times out before its
//! callee answers, the mark bounds the growth to 1 + d · (R − 1) (protocol §6).

use onus::Mode;

use crate::demo::Demo;
use crate::node::{Node, PerNode};
use crate::policy::Policy;

/// What a caller reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Claimed,
    Unclaimed,
    Shield,
    Missing,
}

impl Demo {
    /// The requests that each service should handle under `policy`; `None` where no formula of the
    /// protocol and no vector says so.
    #[must_use]
    pub fn expected(&self, policy: Policy) -> Option<PerNode<u64>> {
        // A failure that comes and goes has no figure of its own, unless nobody retries.
        let persistent = self.hang || self.failure_rate == 1.0;
        if policy != Policy::None && !persistent {
            return None;
        }
        // How variants add up is measured, not given. Without ownership they change nothing.
        if policy.owns() && self.variant_count() > 1 {
            return None;
        }
        let growth = match (self.hang, policy.mode(self.observe)) {
            (false, _) | (true, Mode::Off | Mode::Observe) => self.product(policy),
            (true, Mode::Enforce(_)) => self.with_mark(policy)?,
        };
        let mut handled = PerNode::default();
        for node in Node::ALL {
            let reached = !self.hang || node <= self.fail;
            let growth = growth[node.min(self.fail)];
            handled[node] =
                if reached { (growth * self.requests as f64).round() as u64 } else { 0 };
        }
        Some(handled)
    }

    /// The growth down to the culprit, hop by hop.
    fn product(&self, policy: Policy) -> PerNode<f64> {
        let multiplies = self.multiplying(policy);
        let mut growth = PerNode([1.0; 7]);
        let mut product = 1.0;
        for node in Node::ALL {
            if multiplies[node] {
                product *= factor(policy);
            }
            growth[node] = product;
        }
        growth
    }

    /// Which services get more requests than their callers handle.
    fn multiplying(&self, policy: Policy) -> PerNode<bool> {
        let mut multiplies = PerNode::default();
        let mut read = self.answer(self.fail, policy, Read::Claimed);
        let above = Node::ALL[..self.fail.depth()].iter().rev();
        for &caller in above {
            let Some(callee) = caller.callee() else { continue };
            let retries = policy != Policy::None && self.no_retries != Some(caller);
            let blind = self.no_claims == Some(caller) || policy.mode(self.observe) == Mode::Off;
            let stops = match read {
                Read::Unclaimed => !blind && !self.observe,
                Read::Shield => !blind,
                Read::Claimed | Read::Missing => false,
            };
            multiplies[callee] = retries && !stops;
            let passed_on = match read {
                Read::Unclaimed | Read::Shield => Read::Unclaimed,
                Read::Claimed | Read::Missing if multiplies[callee] => Read::Unclaimed,
                Read::Claimed | Read::Missing => Read::Claimed,
            };
            let lost = self.context_loss == Some(caller);
            read = self.answer(caller, policy, if lost { Read::Claimed } else { passed_on });
        }
        multiplies
    }

    /// What a caller reads of an error that `node` has this to say about.
    fn answer(&self, node: Node, policy: Policy, says: Read) -> Read {
        if self.no_claims == Some(node) || policy.mode(self.observe) == Mode::Off {
            Read::Missing
        } else if self.shield == Some(node) {
            Read::Shield
        } else {
            says
        }
    }

    /// The growth where no answer is ever seen and retries carry the mark.
    fn with_mark(&self, policy: Policy) -> Option<PerNode<f64>> {
        // The bound is for whole attempts, and for services that are all alike.
        if policy.budget_percent().is_some() || self.variant_count() > 0 {
            return None;
        }
        let extra = factor(policy) - 1.0;
        Some(PerNode(Node::ALL.map(|node| 1.0 + node.depth() as f64 * extra)))
    }
}

/// How much a hop that retries multiplies.
fn factor(policy: Policy) -> f64 {
    match policy.budget_percent() {
        Some(percent) => 1.0 + f64::from(percent) / 100.0,
        None => f64::from(policy.attempts()),
    }
}
