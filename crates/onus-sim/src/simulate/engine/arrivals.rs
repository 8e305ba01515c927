//! Requests from outside: they come by chance, whether or not the ones before are answered.

use super::World;
use super::events::Event;
use super::state::Origin;
use crate::simulate::plan::Until;

impl World<'_> {
    /// Sets the time of the next request from outside, if there is one.
    pub(super) fn schedule_arrival(&mut self) {
        let wait = self.traffic.exponential() * 1e9 / self.plan.rate;
        let time = self.now + wait.max(1.0) as u64;
        let comes = match self.plan.until {
            Until::Requests(requests) => self.arrived < requests,
            Until::Nanos(end) => time <= end,
        };
        if comes {
            self.events.at(time, Event::Arrival);
        }
        self.tally.all_came = !comes;
    }

    pub(super) fn arrival(&mut self) {
        self.arrived += 1;
        let place = self.traffic.unit();
        let bad_key = self.traffic.happens(self.plan.bad_keys);
        let entries = &self.plan.entries;
        let entry = entries.partition_point(|(_, share)| *share <= place).min(entries.len() - 1);
        self.tally.arrival(self.now, bad_key);
        let origin = Origin {
            caller: None,
            root_at: self.now,
            bad_key,
            original: true,
            marked: false,
            attempt: 1,
            depth: 0,
        };
        self.arrive(entries[entry].0, origin, None, None);
        self.schedule_arrival();
    }
}
