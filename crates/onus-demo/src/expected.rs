//! What each service should handle, from the formulas of the protocol.
//!
//! For a culprit that fails on every call the growth is that of protocol §12: walk the claim from
//! the culprit to the root and note which hops multiply. With no ownership all hops do, and the
//! products are R^d and (1 + B)^d; with ownership one does. A budget counts all calls of a hop,
//! those that do not fail too: where only some keys fail, their calls may be retried until B of all
//! calls are. Where every level times out before its callee answers, the mark bounds the growth to
//! 1 + d · (R − 1) (protocol §6).

use onus::Mode;

use crate::demo::Demo;
use crate::key::Key;
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
        let sound = (self.requests - self.requests_with_bad_keys()) as f64;
        let failing = self.failing(policy)?;
        Some(PerNode(failing.0.map(|failing| (sound + failing).round() as u64)))
    }

    /// The requests with a bad key that each service should handle under `policy`; `None` where
    /// there are no bad keys, and where [`Self::expected`] says nothing.
    #[must_use]
    pub fn expected_with_bad_keys(&self, policy: Policy) -> Option<PerNode<u64>> {
        self.bad_keys?;
        Some(PerNode(self.failing(policy)?.0.map(|failing| failing.round() as u64)))
    }

    /// The requests of the client that have a bad key; all of them where any key is.
    pub(crate) fn requests_with_bad_keys(&self) -> u64 {
        let Some(bad_keys) = self.bad_keys else { return self.requests };
        let keys = Key::COUNT as u64;
        let rest = (0..self.requests % keys)
            .filter(|&number| Key::of_request(number).is_below(bad_keys.into()));
        self.requests / keys * u64::from(bad_keys) + rest.count() as u64
    }

    /// The requests at each service that are about what fails, with their retries.
    fn failing(&self, policy: Policy) -> Option<PerNode<f64>> {
        // A failure that comes and goes has no figure of its own, unless nobody retries.
        let persistent = self.hang || self.failure_rate == 1.0;
        if policy != Policy::None && !persistent {
            return None;
        }
        // How variants add up is measured, not given. Without ownership they change nothing.
        if policy.owns() && self.variant_count() > 1 {
            return None;
        }
        let to_culprit = match (self.hang, policy.mode(self.observe)) {
            (false, _) | (true, Mode::Off | Mode::Observe) => self.hop_by_hop(policy),
            (true, Mode::Enforce(_)) => self.with_mark(policy)?,
        };
        Some(PerNode(Node::ALL.map(|node| match !self.hang || node <= self.fail {
            true => to_culprit[node.min(self.fail)],
            false => 0.0,
        })))
    }

    /// The failing requests down to the culprit: what arrives is called, and called again by the
    /// hops that multiply, as far as their budgets go.
    fn hop_by_hop(&self, policy: Policy) -> PerNode<f64> {
        let multiplies = self.multiplying(policy);
        let mut failing = self.requests_with_bad_keys() as f64;
        let sound = self.requests as f64 - failing;
        PerNode(Node::ALL.map(|node| {
            if multiplies[node] {
                failing += retries_made(policy, failing, failing + sound);
            }
            failing
        }))
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

    /// The requests where no answer is ever seen and retries carry the mark.
    fn with_mark(&self, policy: Policy) -> Option<PerNode<f64>> {
        // The bound is for whole attempts, and for services that are all alike.
        if policy.budget_percent().is_some() || self.variant_count() > 0 {
            return None;
        }
        let each = self.requests as f64;
        let extra = retries_made(policy, each, each);
        Some(PerNode(Node::ALL.map(|node| each + node.depth() as f64 * extra)))
    }
}

/// The retries of a hop that makes so many calls, of which so many fail in every attempt.
fn retries_made(policy: Policy, failing: f64, calls: f64) -> f64 {
    let wanted = failing * f64::from(policy.attempts() - 1);
    match policy.budget_percent() {
        Some(percent) => wanted.min(calls * f64::from(percent) / 100.0),
        None => wanted,
    }
}
