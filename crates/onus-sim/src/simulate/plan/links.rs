//! The edges of a plan.

use onus_core::EdgeClass;

use super::{EdgePlan, Plan};
use crate::file_error::{Fault, at};
use crate::simulate::graph::Graph;
use crate::simulate::plan::build::find;
use crate::simulate::scenario::EdgeFile;

/// The class of an edge that is known.
pub(super) const fn class(fail_open: bool) -> EdgeClass {
    if fail_open { EdgeClass::FailOpen } else { EdgeClass::FailClose }
}

/// The edges of the graph, as they are unless the scenario says otherwise.
pub(super) fn edges(graph: &Graph, timeout: Option<u64>) -> Vec<EdgePlan> {
    let links = (0..graph.names.len()).flat_map(|service| graph.links(service));
    let edge = links.map(|link| EdgePlan {
        to: link.to as u32,
        calls: link.calls,
        timeout,
        fail_open: false,
        held: EdgeClass::FailClose,
        replayable: true,
        retried: false,
        layer_attempts: 0,
        policy: onus_core::EdgePolicy::default(),
        first_memory: 0,
        own_attempts: None,
        own_budget_percent: None,
    });
    edge.collect()
}

/// What the scenario says of an edge.
pub(super) fn adjust(plan: &mut Plan, graph: &Graph, file: &EdgeFile) -> Result<(), Fault> {
    let (from, to) = (find(graph, &file.from)?, find(graph, &file.to)?);
    let of_caller = plan.services[from].steps.iter().cloned().flatten();
    let edges: Vec<_> =
        of_caller.filter(|edge| plan.edges[*edge as usize].to as usize == to).collect();
    if edges.is_empty() {
        return Err(at(&file.to, format!("{} does not call {}", file.from.value, file.to.value)));
    }
    let calls = match &file.calls {
        Some(calls) if !(0.0..=1000.0).contains(&calls.value) => {
            let message = format!("{} calls per request; allowed is 0 to 1000", calls.value);
            return Err(at(calls, message));
        }
        Some(calls) => Some(calls.value),
        None => None,
    };
    for edge in edges {
        let edge = &mut plan.edges[edge as usize];
        edge.calls = calls.unwrap_or(edge.calls);
        edge.timeout = file.timeout.map(|span| span.0).or(edge.timeout);
        edge.fail_open = file.fail_open;
        edge.held = file.held.map_or_else(|| class(file.fail_open), EdgeClass::from);
        edge.replayable = file.replayable;
        edge.own_attempts = file.attempts;
        edge.own_budget_percent = file.budget_percent;
    }
    Ok(())
}
