//! How many requests of a demo run at a time.
//!
//! Those that are answered keep the machine busy, a few at a time. Those that hang wait most of
//! their time, and many can wait together. But a call to a service that hangs needs a connection
//! of its own, and where connections are asked for faster than the machine makes them, calls time
//! out before they arrive: then the counts would be too small.

use crate::demo::Demo;
use crate::load::Load;
use crate::node::Node;
use crate::policy::Policy;

impl Demo {
    /// The requests of a run.
    pub(crate) fn load(&self, policy: Policy) -> Load {
        if !self.hang {
            let concurrency = (self.files / FILES_PER_REQUEST).clamp(1, CONCURRENCY);
            return Load::new(self.requests, concurrency);
        }
        let concurrency = self.connections_at_a_time() / self.connections_at_once(policy);
        Load {
            ramp: self.hang_timeout,
            // Above A there is only the client to time out.
            timeout: (self.fail == Node::A).then_some(self.hang_timeout),
            ..Load::new(self.requests, (concurrency as u64).max(1))
        }
    }

    /// How many connections of hanging calls may be open; each is for the length of the timeout.
    fn connections_at_a_time(&self) -> f64 {
        let by_machine = CONNECTIONS_PER_SECOND * self.hang_timeout.as_secs_f64();
        let by_files = self.files as f64 / FILES_PER_CONNECTION;
        by_machine.min(by_files)
    }

    /// How many of them a request has open, on average.
    fn connections_at_once(&self, policy: Policy) -> f64 {
        // Where no formula says what ownership leaves, it leaves no more than there is without it.
        let without = match policy.budget_percent() {
            Some(_) => Policy::Budget,
            None => Policy::Everywhere,
        };
        let handled = self.expected(policy).or_else(|| self.expected(without));
        let handled = handled.map_or([self.requests; 7], |handled| handled.0);
        // A waits for all its calls of B, one timeout each.
        let timeouts = handled[Node::B.depth()].max(self.requests);
        handled.iter().sum::<u64>() as f64 / timeouts as f64
    }
}

/// Enough to keep a few cores busy.
const CONCURRENCY: u64 = 16;

/// Seven connections with two ends, and some to spare.
const FILES_PER_REQUEST: u64 = 16;

/// Both ends, and as many again for those that are being opened or closed.
const FILES_PER_CONNECTION: f64 = 4.0;

/// A core makes twice as many, and has other things to do.
const CONNECTIONS_PER_SECOND: f64 = 3500.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_sent_as_fast_as_connections_can_be_made() {
        fn check(fail: Node, policy: Policy, files: u64, concurrency: u64) {
            let demo = Demo { hang: true, fail, files, ..Demo::default() };
            assert_eq!(demo.load(policy).concurrency, concurrency, "{policy:?} at {fail}");
        }
        use Policy::{Budget, Everywhere, None, Ownership, OwnershipBudget};
        let enough = 8192;
        // 1,400 connections at a time: 4,000 calls of 1,000 requests in 1,000 timeouts, 15,000 in
        // 2,000, 4,641 in 1,100, 10,000 in 2,000.
        check(Node::D, None, enough, 350);
        check(Node::D, Everywhere, enough, 186);
        check(Node::D, Budget, enough, 331);
        check(Node::D, Ownership, enough, 280);
        check(Node::D, OwnershipBudget, enough, 331);
        check(Node::G, Everywhere, enough, 22);
        check(Node::A, Everywhere, enough, 1400);
        check(Node::D, Everywhere, 1024, 34);
        check(Node::G, Everywhere, 20, 1);
    }

    #[test]
    fn what_is_answered_is_sent_a_few_at_a_time() {
        for (files, concurrency) in [(8192, 16), (128, 8), (3, 1)] {
            let load = Demo { files, ..Demo::default() }.load(Policy::Everywhere);
            assert_eq!(load, Load::new(1000, concurrency));
        }
    }
}
