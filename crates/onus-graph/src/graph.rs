//! Services and the calls between them.

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

/// A service in a [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub(crate) NodeIndex);

/// A service: a procedure of one where procedures are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// How far ownership reaches in it.
    pub coverage: Coverage,
}

/// How far ownership reaches in a service (protocol §1, §10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// Its calls are tied to the requests that it serves, and claims decide.
    #[default]
    Enforcing,
    /// It sends and reads claims, and retries all the same.
    Observing,
    /// Claims decide, and its calls cannot be tied to the requests that it serves.
    ContextLost,
    /// It sends no claims and retries blindly: there is no Onus in it, or it is off.
    NonCooperative,
}

/// The calls of one service to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The most attempts of a call; 1 where there are no retries.
    pub attempts: u32,
    /// Whether the caller survives the callee's failure.
    pub fail_open: bool,
    /// Whether the caller takes it for an edge whose failure it survives, and blames nobody there.
    pub held_fail_open: bool,
}

/// Services and the calls between them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) inner: DiGraph<Service, Edge>,
}

impl Service {
    /// A service in which claims decide.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), coverage: Coverage::default() }
    }

    /// The same service with this coverage.
    #[must_use]
    pub fn covered(self, coverage: Coverage) -> Self {
        Self { coverage, ..self }
    }
}

impl Edge {
    /// Calls that a failing callee takes down with it, tried so often; 0 counts as 1.
    #[must_use]
    pub const fn retrying(attempts: u32) -> Self {
        let attempts = if attempts == 0 { 1 } else { attempts };
        Self { attempts, fail_open: false, held_fail_open: false }
    }

    /// The same calls where the caller survives their failure, and knows it.
    #[must_use]
    pub const fn fail_open(self) -> Self {
        Self { fail_open: true, held_fail_open: true, ..self }
    }
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a service.
    pub fn add_service(&mut self, service: Service) -> ServiceId {
        ServiceId(self.inner.add_node(service))
    }

    /// Adds the calls of `caller` to `callee`.
    ///
    /// # Panics
    ///
    /// If one of them is of another graph.
    pub fn add_edge(&mut self, caller: ServiceId, callee: ServiceId, edge: Edge) {
        self.inner.add_edge(caller.0, callee.0, edge);
    }

    /// The service with this id; `None` for one of another graph.
    #[must_use]
    pub fn service(&self, id: ServiceId) -> Option<&Service> {
        self.inner.node_weight(id.0)
    }

    /// All services, in the order in which they were added.
    pub fn services(&self) -> impl Iterator<Item = (ServiceId, &Service)> {
        self.inner.node_indices().zip(self.inner.node_weights()).map(|(id, it)| (ServiceId(id), it))
    }

    /// Says how far ownership reaches in a service; nothing for one of another graph.
    pub fn cover(&mut self, id: ServiceId, coverage: Coverage) {
        if let Some(service) = self.inner.node_weight_mut(id.0) {
            service.coverage = coverage;
        }
    }

    /// Where requests come in, in the order in which they were added: services that nobody calls,
    /// and the members of a circle of calls into which none leads.
    #[must_use]
    pub fn entries(&self) -> Vec<ServiceId> {
        let circles = kosaraju_scc(&self.inner);
        let mut circle_of = vec![0; self.inner.node_count()];
        for (number, circle) in circles.iter().enumerate() {
            circle.iter().for_each(|service| circle_of[service.index()] = number);
        }
        let mut called = vec![false; circles.len()];
        for edge in self.inner.edge_references() {
            let [caller, callee] = [edge.source(), edge.target()].map(|it| circle_of[it.index()]);
            called[callee] |= caller != callee;
        }
        let is_entry = |service: &NodeIndex| !called[circle_of[service.index()]];
        self.inner.node_indices().filter(is_entry).map(ServiceId).collect()
    }

    /// All edges, as caller, callee and edge.
    pub fn edges(&self) -> impl Iterator<Item = (ServiceId, ServiceId, &Edge)> {
        self.inner
            .edge_references()
            .map(|edge| (ServiceId(edge.source()), ServiceId(edge.target()), edge.weight()))
    }

    pub(crate) fn callers(&self, callee: NodeIndex) -> impl Iterator<Item = (NodeIndex, Edge)> {
        let edges = self.inner.edges_directed(callee, Direction::Incoming);
        edges.map(|edge| (edge.source(), *edge.weight()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_in_where_nobody_calls_and_into_circles_of_their_own() {
        let mut graph = Graph::new();
        let [a, b, c, d, e] =
            ["A", "B", "C", "D", "E"].map(|name| graph.add_service(Service::new(name)));
        for (caller, callee) in [(a, b), (a, a), (c, d), (d, c), (d, b), (b, e), (e, b)] {
            graph.add_edge(caller, callee, Edge::retrying(1));
        }
        assert_eq!(graph.entries(), [a, c, d]);
    }
}
