//! What would make a storm smaller.

use std::cmp::Ordering;

use crate::graph::{Coverage, Edge, Graph, ServiceId};
use crate::reading::Ownership;

/// A change to one service or one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The service gets Onus, enforces, or no longer loses its context, whichever it lacks.
    Cover(ServiceId),
    /// The service has no Onus.
    LeaveOut(ServiceId),
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
    /// The changes along the worst path below `service` that make its storm smaller, best first:
    /// without ownership only budgets do, with it also whatever it lacks.
    ///
    /// Each change is tried on a copy of the graph: the cost is that of [`Self::storms`] for each
    /// service and edge on the path, of which the [`TRIED`] nearest to the culprit are tried, and fewer
    /// in a graph of more than 250 000 edges.
    #[must_use]
    pub fn advice(&self, service: ServiceId, ownership: Ownership) -> Vec<Advice> {
        let now = self.storm(service, ownership);
        let mut advice = self.tried(service, self.changes(&now.path), ownership);
        advice.retain(|then| then.radius < now.radius || then.amplification < now.amplification);
        advice.sort_by(Advice::smaller_first);
        advice
    }

    /// The services on the worst path below `service` without which ownership would leave a larger
    /// storm, the most needed first.
    #[must_use]
    pub fn most_needed(&self, service: ServiceId) -> Vec<Advice> {
        let with_all = self.storm(service, Ownership::AsIs);
        let path = self.storm(service, Ownership::Nowhere).path;
        let covered = |id: &ServiceId| self.inner[id.0].coverage == Coverage::Enforcing;
        let changes = path.into_iter().filter(covered).map(Change::LeaveOut).collect();
        let mut needed = self.tried(service, changes, Ownership::AsIs);
        needed.retain(|without| {
            without.radius > with_all.radius || without.amplification > with_all.amplification
        });
        needed.sort_by(|one, other| Advice::smaller_first(other, one));
        needed
    }

    fn tried(
        &self,
        service: ServiceId,
        mut changes: Vec<Change>,
        ownership: Ownership,
    ) -> Vec<Advice> {
        let tried = (EDGES / self.inner.edge_count().max(1)).clamp(1, TRIED);
        changes.drain(..changes.len().saturating_sub(tried));
        let tried = changes.into_iter().map(|change| {
            let then = self.changed(change).storm(service, ownership);
            Advice { change, radius: then.radius, amplification: then.amplification }
        });
        tried.collect()
    }

    fn changes(&self, path: &[ServiceId]) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut add = |change| {
            if !changes.contains(&change) {
                changes.push(change);
            }
        };
        for (at, &caller) in path.iter().enumerate() {
            if self.inner[caller.0].coverage != Coverage::Enforcing {
                add(Change::Cover(caller));
            }
            let Some(&callee) = path.get(at + 1) else { continue };
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
            Change::Cover(service) => graph.cover(service, Coverage::Enforcing),
            Change::LeaveOut(service) => graph.cover(service, Coverage::NonCooperative),
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

impl Advice {
    fn smaller_first(&self, other: &Self) -> Ordering {
        let by_amplification = self.amplification.total_cmp(&other.amplification);
        by_amplification.then(self.radius.cmp(&other.radius))
    }
}

/// The most changes that are tried: more than anybody reads, and circles make long paths.
pub const TRIED: usize = 64;

/// Fewer are tried where they would walk more edges than this, which takes some seconds.
const EDGES: usize = 16_000_000;

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
            .advice(a, Ownership::AsIs)
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

    #[test]
    fn before_anything_is_deployed_budgets_help_and_each_service_left_out_costs() {
        // A → B → C → D, two attempts at each hop; nobody has Onus yet.
        let mut graph = Graph::new();
        let [a, b, c, d] = ["A", "B", "C", "D"].map(|name| graph.add_service(Service::new(name)));
        for (caller, callee) in [(a, b), (b, c), (c, d)] {
            graph.add_edge(caller, callee, Edge::retrying(2));
        }
        let budgets =
            [(a, b), (b, c), (c, d)].map(|(caller, callee)| Change::Budget(caller, callee));
        let changes = |advice: Vec<Advice>| -> Vec<_> {
            advice.into_iter().map(|it| (it.change, it.radius, it.amplification)).collect()
        };
        let advice = changes(graph.advice(a, Ownership::Nowhere));
        assert_eq!(advice, budgets.map(|change| (change, 2, 4.0)));
        // Where B is left out, three retry: C, B blindly, and A, which reads no claim. D has no
        // calls: C retries whether D claims its failure or says nothing.
        let needed = changes(graph.most_needed(a));
        let left_out = [(b, 3, 8.0), (a, 2, 4.0), (c, 2, 4.0)];
        assert_eq!(needed, left_out.map(|(it, radius, load)| (Change::LeaveOut(it), radius, load)));
    }
}
