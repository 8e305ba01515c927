//! What an operator is shown of an edge.

use onus_core::{Arm, Stop, Timestamp};

use crate::agent::Agent;
use crate::counters::{Counter, Place};
use crate::edges::Edge;

/// What an operator is shown of an edge. Names and words are those of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeView {
    /// The procedure of this service that calls; empty for calls made for no request.
    pub caller_method: String,
    /// The service that is called.
    pub callee: String,
    /// Its procedure.
    pub callee_method: String,
    /// The class that decisions use.
    pub class: &'static str,
    /// Who says so.
    pub class_by: &'static str,
    /// The class in words, with its evidence.
    pub explained: String,
    /// The most attempts of a call; 1 is no retry.
    pub attempts: u32,
    /// Retries that the budget would let pass at once; `None` without a budget.
    pub budget_tokens: Option<u64>,
    /// Calls that ended without an error.
    pub ok: u64,
    /// Calls that ended with one.
    pub failed: u64,
    /// Calls that nobody waited for.
    pub abandoned: u64,
    /// Retries that were made.
    pub retries: u64,
    /// Failed calls after which no retry was made because the callee's error left none open.
    pub suppressed: u64,
    /// Calls that could not be tied to a request.
    pub untied: u64,
}

impl Agent {
    /// All edges that this service has used, for people.
    #[must_use]
    pub fn edge_views(&self, now: Timestamp) -> Vec<EdgeView> {
        self.edges().map(|edge| self.view(&edge, now)).collect()
    }

    fn view(&self, edge: &Edge, now: Timestamp) -> EdgeView {
        let symbols = self.symbols();
        let finding = edge.finding(now);
        let arms = || Arm::ALL.iter().map(|&arm| edge.lasting.counters.arm(arm));
        let memory = edge.memory(now);
        EdgeView {
            caller_method: edge.key.caller.display(symbols).to_string(),
            callee: symbols.name(edge.key.callee).to_string(),
            callee_method: edge.key.procedure.display(symbols).to_string(),
            class: finding.class.as_str(),
            class_by: finding.by.as_str(),
            explained: finding.to_string(),
            attempts: edge.policy.retry.map_or(1, |retry| retry.attempts()),
            budget_tokens: memory.state.budget.as_ref().map(|budget| budget.balance(now)),
            ok: arms().map(|arm| arm.ok.get()).sum(),
            failed: arms().map(|arm| arm.failed.get()).sum(),
            abandoned: arms().map(|arm| arm.abandoned.get()).sum(),
            retries: arms().flat_map(|arm| &arm.retries).map(Counter::get).sum(),
            suppressed: arms().map(|arm| arm.stops[Stop::Suppressed.place()].get()).sum(),
            untied: edge.lasting.counters.untied.get(),
        }
    }
}
