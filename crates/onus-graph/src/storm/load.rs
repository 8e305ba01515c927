//! The other end of a storm: how many requests reach a service that fails.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;

use super::{Search, Standings, Storms, parts, standing_of};
use crate::graph::{Graph, ServiceId};
use crate::reading::{Answer, Ownership};

/// Requests that reach each service while it fails by itself, for one request where requests come
/// in: the most over all ways that lead down to it.
#[derive(Debug)]
pub struct Loads<'a> {
    standings: Standings<'a>,
    /// The largest product of the steps that lead up from a standing.
    above: Vec<f64>,
}

impl Graph {
    /// The load of every service.
    #[must_use]
    pub fn loads(&self, ownership: Ownership) -> Loads<'_> {
        let standings = Standings::of(self, ownership);
        let components = kosaraju_scc(&standings.steps);
        let mut component_of = vec![0; standings.steps.node_count()];
        for (number, component) in components.iter().enumerate() {
            component.iter().for_each(|standing| component_of[standing.index()] = number as u32);
        }
        let storms = Storms { best: Vec::new(), circles: Vec::new() };
        let search = Search { standings, component_of, storms };
        let mut above = vec![1.0_f64; search.component_of.len()];
        // What leads nowhere but up comes first.
        for component in components {
            let steps = &search.standings.steps;
            let mut most = 1.0_f64;
            for step in component.iter().flat_map(|&standing| steps.edges(standing)) {
                let number = |standing: NodeIndex| search.component_of[standing.index()];
                if number(step.source()) != number(step.target()) {
                    most = most.max(f64::from(*step.weight()) * above[step.target().index()]);
                }
            }
            let round = search.round(&component).map_or(1.0, |round| round.amplification);
            for &standing in &component {
                above[standing.index()] = most * round;
            }
        }
        Loads { standings: search.standings, above }
    }
}

impl Loads<'_> {
    /// Requests that reach `culprit`.
    ///
    /// # Panics
    ///
    /// If it is of another graph.
    #[must_use]
    pub fn of(&self, culprit: ServiceId) -> f64 {
        self.above[self.start(culprit).index()]
    }

    /// Requests that reach `callee` on its calls from `caller`; 0 where there are none.
    ///
    /// # Panics
    ///
    /// If one of them is of another graph.
    #[must_use]
    pub fn over(&self, caller: ServiceId, callee: ServiceId) -> f64 {
        let steps = self.standings.steps.edges(self.start(callee));
        steps
            .filter(|step| parts(step.target()).0 == caller.0)
            .map(|step| f64::from(*step.weight()) * self.above[step.target().index()])
            .fold(0.0, f64::max)
    }

    /// Where a service stands that fails by itself.
    fn start(&self, culprit: ServiceId) -> NodeIndex {
        let coverage = self.standings.coverage(culprit.0);
        standing_of(culprit.0, Answer::of_culprit(coverage))
    }
}
