//! What changes on the way: workers and edge classes.

use super::World;
use crate::simulate::plan::{Change, FaultPlan, What};

impl World<'_> {
    pub(super) fn change(&mut self, number: u32) {
        match self.plan.changes[number as usize].1 {
            Change::Workers { service, workers } => {
                let service = &self.plan.services[service as usize];
                for instance in service.first_instance..service.first_instance + service.instances {
                    self.instances[instance as usize].workers = Some(workers);
                    self.serve_waiting(instance);
                }
            }
            Change::FailOpen { edge, fail_open } => self.fail_open[edge as usize] = fail_open,
            Change::Held { edge, held } => self.held[edge as usize] = held,
        }
    }

    /// Whether this goes wrong in the request that is handled.
    pub(super) fn goes_wrong(
        &mut self,
        what: What,
        service: u32,
        instance: u32,
        number: u64,
        bad_key: bool,
    ) -> bool {
        let plan = &self.plan.services[service as usize];
        let place = instance - plan.first_instance;
        let now = self.now;
        let concerns = |fault: &&FaultPlan| {
            fault.what == what
                && (fault.from..fault.to).contains(&now)
                && place < fault.instances
                && (bad_key || !fault.bad_keys)
                && fault.numbers.include(number)
        };
        let mut faults = plan.faults.iter().filter(concerns);
        faults.any(|fault| self.luck.happens(fault.probability))
    }
}
