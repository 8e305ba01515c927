//! How far storms reach in the mesh as it is, and with ownership.

use std::collections::{HashMap, HashSet};

use onus_graph::{Change, Coverage, Edge, Graph, Ownership, Service, ServiceId};

use crate::edges::{Class, EdgeFacts};
use crate::nodes::Nodes;

/// What storms come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Storms {
    /// Where requests come in, worst first.
    pub apis: Vec<Api>,
    /// The mean radius over them, as it is.
    pub mean_radius: Option<f64>,
    /// The same with ownership.
    pub mean_radius_owned: Option<f64>,
    /// All edges, worst first.
    pub edges: Vec<RankedEdge>,
    /// What would help the worst of them most.
    pub gains: Vec<Gain>,
}

/// A service where requests come in.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    /// Its name.
    pub service: String,
    /// The most hops on one path that multiply requests.
    pub radius: u32,
    /// The same with ownership.
    pub radius_owned: u32,
    /// Requests at a culprit for one here, where budgets do not bind.
    pub amplification: f64,
    /// The same on the path below while everything fails and budgets bind.
    pub amplification_budgeted: f64,
    /// Requests at a culprit with ownership; which one it is may be another.
    pub amplification_owned: f64,
    /// The path with this radius, from here down to the culprit.
    pub path: Vec<String>,
    /// Requests at that culprit for one at the worst entrance, as it is and with ownership.
    pub at_culprit: (f64, f64),
    /// Services through which a circle of calls multiplies without end.
    pub unbounded_through: Vec<String>,
}

/// An edge, and what it does to a callee that fails.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedEdge {
    /// The edge.
    pub facts: EdgeFacts,
    /// Requests that reach the callee over it for one where requests come in.
    pub load: f64,
    /// The same with ownership.
    pub load_owned: f64,
}

/// A part of the way to ownership everywhere, and what the worst API would then have.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// What to change.
    pub change: String,
    /// The radius then.
    pub radius: u32,
    /// The amplification then.
    pub amplification: f64,
}

/// The mesh as a graph.
pub(crate) struct Mesh {
    graph: Graph,
    ids: Vec<ServiceId>,
}

impl Mesh {
    /// `coverage` is that of each node.
    pub(crate) fn new(nodes: &Nodes, edges: &[EdgeFacts], coverage: &[Coverage]) -> Self {
        let (graph, ids) = build(nodes, edges, coverage);
        Self { graph, ids }
    }

    fn name(&self, service: ServiceId) -> String {
        self.graph.service(service).map(|service| service.name.clone()).unwrap_or_default()
    }

    fn names(&self, services: &[ServiceId]) -> Vec<String> {
        services.iter().map(|&service| self.name(service)).collect()
    }

    pub(crate) fn storms(&self, edges: Vec<EdgeFacts>) -> Storms {
        let now = self.graph.storms(Ownership::AsIs);
        let owned = self.graph.storms(Ownership::Everywhere);
        let loads = self.graph.loads(Ownership::AsIs);
        let loads_owned = self.graph.loads(Ownership::Everywhere);
        // A service that calls nobody, as one of which only the mode is known, is no entry.
        let callers: HashSet<_> = edges.iter().map(|edge| self.ids[edge.caller_node]).collect();
        let mut entries = self.graph.entries();
        entries.retain(|entry| callers.contains(entry));
        let budgeted = self.budgeted(&edges);
        let mut apis: Vec<(ServiceId, Api)> = entries
            .iter()
            .map(|&root| {
                let (storm, then) = (now.below(root), owned.size_below(root));
                let of_last = |last: &ServiceId| (loads.of(*last), loads_owned.of(*last));
                let hops = storm
                    .path
                    .windows(2)
                    .map(|hop| budgeted.get(&(hop[0], hop[1])).copied().unwrap_or(1.0));
                let api = Api {
                    service: self.name(root),
                    radius: storm.radius,
                    radius_owned: then.radius,
                    amplification: storm.amplification,
                    amplification_budgeted: hops.product(),
                    amplification_owned: then.amplification,
                    path: self.names(&storm.path),
                    at_culprit: storm.path.last().map_or((1.0, 1.0), of_last),
                    unbounded_through: self.names(&storm.unbounded_through),
                };
                (root, api)
            })
            .collect();
        apis.sort_by(|(_, one), (_, other)| {
            let by_size = other.amplification.total_cmp(&one.amplification);
            by_size.then(other.radius.cmp(&one.radius)).then(one.service.cmp(&other.service))
        });
        let gains = apis.first().map(|(worst, _)| self.gains(*worst)).unwrap_or_default();
        let mut ranked: Vec<RankedEdge> = edges
            .into_iter()
            .map(|facts| {
                let (caller, callee) = (self.ids[facts.caller_node], self.ids[facts.callee_node]);
                RankedEdge {
                    load: loads.over(caller, callee),
                    load_owned: loads_owned.over(caller, callee),
                    facts,
                }
            })
            .collect();
        ranked.sort_by(|one, other| {
            let extra = |edge: &RankedEdge| edge.facts.retries.attempts > 1;
            let calls = |edge: &RankedEdge| edge.facts.calls.unwrap_or(0.0);
            (extra(other).cmp(&extra(one)))
                .then(other.load.total_cmp(&one.load))
                .then(calls(other).total_cmp(&calls(one)))
        });
        Storms {
            mean_radius: mean(apis.iter().map(|(_, api)| api.radius)),
            mean_radius_owned: mean(apis.iter().map(|(_, api)| api.radius_owned)),
            apis: apis.into_iter().map(|(_, api)| api).collect(),
            edges: ranked,
            gains,
        }
    }

    /// Requests for a call on each hop while everything fails, held back by its budget.
    fn budgeted(&self, edges: &[EdgeFacts]) -> HashMap<(ServiceId, ServiceId), f64> {
        let hop = |edge: &EdgeFacts| (self.ids[edge.caller_node], self.ids[edge.callee_node]);
        edges.iter().map(|edge| (hop(edge), edge.retries.requests_per_call())).collect()
    }

    /// What it takes to get there: ownership in the callers on the worst path, from the one next to
    /// the culprit up, each added to those before it; then the budget that does most by itself.
    fn gains(&self, worst: ServiceId) -> Vec<Gain> {
        let storm = self.graph.storm(worst, Ownership::AsIs);
        let lacks = |service: &&ServiceId| {
            let service = self.graph.service(**service);
            service.is_some_and(|it| it.coverage != Coverage::Enforcing)
        };
        let mut graph = self.graph.clone();
        let mut gains = Vec::new();
        for &caller in storm.path.iter().rev().skip(1).filter(lacks).take(STEPS) {
            graph.cover(caller, Coverage::Enforcing);
            let then = graph.storm(worst, Ownership::AsIs);
            let and = if gains.is_empty() { "ownership enforced in" } else { "and in" };
            gains.push(Gain {
                change: format!("{and} {}", self.name(caller)),
                radius: then.radius,
                amplification: then.amplification,
            });
        }
        let advice = self.graph.advice(worst, Ownership::AsIs);
        gains.extend(advice.into_iter().find_map(|advice| match advice.change {
            Change::Budget(caller, callee) => Some(Gain {
                change: format!(
                    "or, without ownership, a tight budget for {} to {}",
                    self.name(caller),
                    self.name(callee)
                ),
                radius: advice.radius,
                amplification: advice.amplification,
            }),
            Change::Cover(_) | Change::LeaveOut(_) | Change::Learn(..) => None,
        }));
        gains
    }
}

/// The mean; none of nothing.
fn mean(radii: impl ExactSizeIterator<Item = u32>) -> Option<f64> {
    let count = radii.len();
    let sum: f64 = radii.map(f64::from).sum();
    (count > 0).then(|| sum / count as f64)
}

fn build(nodes: &Nodes, edges: &[EdgeFacts], coverage: &[Coverage]) -> (Graph, Vec<ServiceId>) {
    let mut graph = Graph::new();
    let ids: Vec<_> = coverage
        .iter()
        .enumerate()
        .map(|(number, of_node)| {
            graph.add_service(Service::new(nodes.name(number)).covered(*of_node))
        })
        .collect();
    for facts in edges {
        let edge = Edge::retrying(facts.retries.attempts);
        let edge = match facts.class {
            Class::FailOpen => edge.fail_open(),
            Class::FailClose | Class::Unknown => edge,
        };
        graph.add_edge(ids[facts.caller_node], ids[facts.callee_node], edge);
    }
    (graph, ids)
}

/// More than these are no advice.
const STEPS: usize = 5;
