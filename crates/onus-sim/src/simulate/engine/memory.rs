//! What an instance of a caller remembers of an edge.

use onus_core::{EdgeState, Timestamp};

use crate::simulate::plan::{EdgePlan, Plan};
use crate::simulate::policy::Kind;
use crate::simulate::rivals::Rival;

/// What an instance of a caller remembers of an edge.
pub(super) struct Memory {
    pub(super) state: EdgeState,
    pub(super) rival: Option<Box<dyn Rival>>,
}

impl Memory {
    fn new(plan: &Plan, edge: &EdgePlan) -> Self {
        let rival = match plan.policy.kind {
            Kind::Rival(rival) if edge.retried => Some(rival.start()),
            Kind::Rival(_) | Kind::Shipped(_) => None,
        };
        Self { state: EdgeState::new(&edge.policy), rival }
    }

    /// The memories of all instances, in the order of their numbers.
    pub(super) fn of_all(plan: &Plan) -> Vec<Self> {
        let mut memories = Vec::new();
        for service in &plan.services {
            for edge in service.steps.iter().cloned().flatten() {
                let edge = &plan.edges[edge as usize];
                let instances = 0..service.instances;
                memories.extend(instances.map(|_| Self::new(plan, edge)));
            }
        }
        memories
    }

    pub(super) fn call_started(&mut self, now: Timestamp) {
        if let Some(budget) = &mut self.state.budget {
            budget.on_calls(1, now);
        }
        if let Some(rival) = &mut self.rival {
            rival.call_started(now);
        }
    }

    pub(super) fn call_succeeded(&mut self, now: Timestamp) {
        if let Some(budget) = &mut self.state.budget {
            budget.on_successes(1, now);
        }
        if let Some(rival) = &mut self.rival {
            rival.attempt_succeeded(now);
        }
    }
}
