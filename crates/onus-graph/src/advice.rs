//! What would make a storm smaller.

use crate::graph::{Coverage, Edge, Graph, ServiceId};
use crate::reading::Ownership;
use crate::storm::Storm;

/// A change to one service or one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The service gets Onus, enforces, or no longer loses its context, whichever it lacks.
    Cover(ServiceId),
    /// The caller learns that the callee takes it down.
    Learn(ServiceId, ServiceId),
    /// The caller's retries get a budget that holds them to next to none while all calls fail.
    Budget(ServiceId, ServiceId),
}

/// A change, and what the storm would be after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What to change.
    pub change: Change,
    /// The most multiplying hops that are then left.
    pub radius: u32,
    /// The amplification that is then left.
    pub amplification: f64,
}

impl Graph {
    /// The changes along the worst path below `service` that make its storm smaller, best first.
    ///
    /// Each change is tried on a copy of the graph: the cost is that of [`Self::storms`] for each
    /// service and edge on the path.
    #[must_use]
    pub fn advice(&self, service: ServiceId) -> Vec<Advice> {
        let now = self.storm(service, Ownership::AsIs);
        let mut advice: Vec<_> = self
            .changes(&now)
            .into_iter()
            .map(|change| {
                let then = self.changed(change).storm(service, Ownership::AsIs);
                Advice { change, radius: then.radius, amplification: then.amplification }
            })
            .filter(|then| then.radius < now.radius || then.amplification < now.amplification)
            .collect();
        advice.sort_by(|one, other| {
            let by_amplification = one.amplification.total_cmp(&other.amplification);
            by_amplification.then(one.radius.cmp(&other.radius))
        });
        advice
    }

    fn changes(&self, storm: &Storm) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut add = |change| {
            if !changes.contains(&change) {
                changes.push(change);
            }
        };
        for (at, &caller) in storm.path.iter().enumerate() {
            if self.inner[caller.0].coverage != Coverage::Enforcing {
                add(Change::Cover(caller));
            }
            let Some(&callee) = storm.path.get(at + 1) else { continue };
            for edge in self.inner.edges_connecting(caller.0, callee.0) {
                let edge = edge.weight();
                if edge.held_fail_open && !edge.fail_open {
                    add(Change::Learn(caller, callee));
                }
                if edge.attempts >= 2 {
                    add(Change::Budget(caller, callee));
                }
            }
        }
        changes
    }

    fn changed(&self, change: Change) -> Self {
        let mut graph = self.clone();
        match change {
            Change::Cover(service) => {
                if let Some(service) = graph.inner.node_weight_mut(service.0) {
                    service.coverage = Coverage::Enforcing;
                }
            }
            Change::Learn(caller, callee) => {
                graph.change_edges(caller, callee, |edge| edge.held_fail_open = edge.fail_open);
            }
            Change::Budget(caller, callee) => {
                graph.change_edges(caller, callee, |edge| edge.attempts = 1);
            }
        }
        graph
    }

    fn change_edges(&mut self, caller: ServiceId, callee: ServiceId, change: impl Fn(&mut Edge)) {
        let edges: Vec<_> = self
            .inner
            .edge_indices()
            .filter(|&edge| self.inner.edge_endpoints(edge) == Some((caller.0, callee.0)))
            .collect();
        for edge in edges {
            change(&mut self.inner[edge]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Service;

    #[test]
    fn each_gap_on_the_worst_path_is_tried() {
        // A → B (context lost) → C (without Onus) → D, two attempts at each hop.
        let mut graph = Graph::new();
        let [a, b, c, d] = [
            ("A", Coverage::Enforcing),
            ("B", Coverage::ContextLost),
            ("C", Coverage::NonCooperative),
            ("D", Coverage::Enforcing),
        ]
        .map(|(name, coverage)| graph.add_service(Service::new(name).covered(coverage)));
        for (caller, callee) in [(a, b), (b, c), (c, d)] {
            graph.add_edge(caller, callee, Edge::retrying(2));
        }
        let now = graph.storm(a, Ownership::AsIs);
        assert_eq!((now.radius, now.amplification), (3, 8.0));
        assert_eq!(now.path, [a, b, c, d]);
        let found: Vec<_> = graph
            .advice(a)
            .into_iter()
            .map(|advice| (advice.change, advice.radius, advice.amplification))
            .collect();
        assert_eq!(
            found,
            [
                (Change::Budget(a, b), 2, 4.0),
                (Change::Cover(b), 2, 4.0),
                (Change::Budget(b, c), 2, 4.0),
                (Change::Cover(c), 2, 4.0),
                (Change::Budget(c, d), 2, 4.0),
            ]
        );
    }
}
