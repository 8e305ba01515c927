//! Everything, joined.

use std::collections::BTreeSet;

use onus_graph::{Coverage, ListedEdge};
use onus_retry_config::RetryConfig;

use crate::edges;
use crate::metrics::Metrics;
use crate::nodes::Nodes;
use crate::retries::{self, Policies, RetriesFrom};
use crate::storms::{Mesh, Storms};
use crate::writes::{self, RepeatedWrite};

/// What there is.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The configuration, empty where there is none.
    pub config: &'a RetryConfig,
    /// What traces show.
    pub traces: Option<&'a onus_traces::Report>,
    /// What metrics say.
    pub metrics: Option<&'a Metrics>,
    /// Who calls whom, where a list says so.
    pub listed: &'a [ListedEdge],
}

/// What retries come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// Totals.
    pub summary: Summary,
    /// Storms, edges and APIs.
    pub storms: Storms,
    /// Calls that are repeated and are not idempotent.
    pub repeated_writes: Vec<RepeatedWrite>,
    /// What was assumed, and what fits nowhere.
    pub notes: Vec<String>,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Services.
    pub services: usize,
    /// Edges.
    pub edges: usize,
    /// Edges whose retries multiply.
    pub retrying_edges: usize,
    /// … and have no budget.
    pub without_budget: usize,
    /// Edges that multiply by the mesh's own default.
    pub by_default: usize,
    /// Edges of which it is known whether the caller survives.
    pub classified: usize,
    /// Policies in the configuration.
    pub policies: usize,
    /// … that are for no edge that was seen.
    pub policies_without_edge: usize,
}

/// Joins what there is.
#[must_use]
pub fn audit(evidence: &Evidence<'_>) -> Audit {
    let mut nodes = Nodes::default();
    let mut edges = edges::collect(evidence, &mut nodes);
    let in_istio =
        evidence.metrics.is_some_and(Metrics::is_istio) || evidence.config.istio_default.is_some();
    let policies = Policies::new(evidence.config, in_istio);
    for edge in &mut edges {
        let (caller, callee) = (nodes.service(edge.caller_node), nodes.service(edge.callee_node));
        edge.retries = retries::of_edge(&policies, caller, callee, edge);
    }
    let mut coverage = vec![Coverage::NonCooperative; nodes.len()];
    for (service, of_service) in evidence.metrics.iter().flat_map(|it| it.coverage()) {
        let number = nodes.add(service);
        coverage.resize(nodes.len(), Coverage::NonCooperative);
        coverage[number] = of_service;
    }
    let summary = summary(evidence.config, &nodes, &edges);
    let notes = notes(evidence, &nodes, &summary);
    let mesh = Mesh::new(&nodes, &edges, &coverage);
    Audit {
        summary,
        storms: mesh.storms(edges),
        repeated_writes: writes::repeated(&evidence.config.policies),
        notes,
    }
}

fn summary(config: &RetryConfig, nodes: &Nodes, edges: &[edges::EdgeFacts]) -> Summary {
    let count = |of: &dyn Fn(&edges::EdgeFacts) -> bool| edges.iter().filter(|it| of(it)).count();
    let multiplies = |edge: &edges::EdgeFacts| edge.retries.attempts > 1;
    let used: BTreeSet<_> = edges.iter().flat_map(|edge| &edge.retries.policies).collect();
    Summary {
        services: nodes.len(),
        edges: edges.len(),
        retrying_edges: count(&multiplies),
        without_budget: count(&|edge| multiplies(edge) && edge.retries.budget.is_none()),
        by_default: count(&|edge| {
            multiplies(edge) && edge.retries.from == RetriesFrom::MeshDefault
        }),
        classified: count(&|edge| edge.class != edges::Class::Unknown),
        policies: config.policies.len(),
        policies_without_edge: config.policies.len() - used.len(),
    }
}

fn notes(evidence: &Evidence<'_>, nodes: &Nodes, summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.edges == 0 {
        notes.push(
            "who calls whom is not known: give --prom, --traces or --graph for radius and amplification"
                .to_owned(),
        );
    } else if summary.classified < summary.edges {
        notes.push(format!(
            "of {} edges it is not known whether the caller survives a failing callee; they are \
             taken for edges where it does not",
            summary.edges - summary.classified
        ));
    }
    if summary.policies_without_edge > 0 && summary.edges > 0 {
        notes.push(format!(
            "{} of {} policies are for no edge that was seen",
            summary.policies_without_edge, summary.policies
        ));
    }
    let mut ambiguous: Vec<_> = nodes.ambiguous.iter().map(ToString::to_string).collect();
    ambiguous.dedup();
    if !ambiguous.is_empty() {
        notes.push(format!(
            "these names are in several namespaces, and traces do not say in which: {}",
            ambiguous.join(", ")
        ));
    }
    notes.extend(evidence.metrics.iter().flat_map(|it| it.untold().iter().cloned()));
    notes
}
