//! The simulator: events in the order of time, and all decisions by the code that is asked.
//!
//! One run is one thread of luck: the same plan and seed make the same run.

mod arrivals;
mod calls;
mod changes;
mod events;
mod instance;
mod memory;
mod reply;
mod requests;
mod slab;
mod state;

use std::sync::atomic::{AtomicBool, Ordering};

use onus_core::{EdgeClass, Timestamp};

use self::events::{Event, Events};
use self::instance::Instance;
use self::memory::Memory;
use self::slab::Slab;
use self::state::{Call, Request};
use super::outcome::Tally;
use super::plan::Plan;
use super::random::Random;

/// A run under way.
pub(crate) struct World<'a> {
    plan: &'a Plan,
    now: u64,
    events: Events,
    requests: Slab<Request>,
    calls: Slab<Call>,
    instances: Vec<Instance>,
    /// The instance of each service that got the latest request.
    turns: Vec<u32>,
    memories: Vec<Memory>,
    /// Whether callers survive each edge's failure, and what they hold of it.
    fail_open: Vec<bool>,
    held: Vec<EdgeClass>,
    arrived: u64,
    /// Luck of the traffic, which all policies share, and of everything else.
    traffic: Random,
    luck: Random,
    tally: Tally,
}

/// How many events are handled between two looks at whether somebody has lost patience.
const EVENTS_PER_LOOK: u32 = 1 << 14;

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, seed: u64) -> Self {
        let instances = plan
            .services
            .iter()
            .flat_map(|service| (0..service.instances).map(|_| Instance::new(service.workers)));
        let mut world = Self {
            plan,
            now: 0,
            events: Events::default(),
            requests: Slab::new(),
            calls: Slab::new(),
            instances: instances.collect(),
            turns: vec![0; plan.services.len()],
            memories: Memory::of_all(plan),
            fail_open: plan.edges.iter().map(|edge| edge.fail_open).collect(),
            held: plan.edges.iter().map(|edge| edge.held).collect(),
            arrived: 0,
            traffic: Random::new(seed, 1),
            luck: Random::new(seed, 2),
            tally: Tally::new(plan),
        };
        for (number, (at, _)) in (0..).zip(&plan.changes) {
            world.events.at(*at, Event::Change(number));
        }
        world.schedule_arrival();
        world
    }

    /// Runs to the end, or until it is told to stop.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Tally {
        let mut events = 0_u32;
        while let Some((now, event)) = self.events.next(self.now) {
            self.now = now;
            self.handle(event);
            events += 1;
            if events == EVENTS_PER_LOOK {
                events = 0;
                if stop.load(Ordering::Relaxed) {
                    self.tally.interrupted = true;
                    break;
                }
            }
        }
        self.tally.end(self.now, self.requests.len() as u64);
        self.tally
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival => self.arrival(),
            Event::Worked(request) => self.worked(request),
            Event::OutOfTime(request) => self.out_of_time(request),
            Event::Ended { call, attempt, reply } => self.attempt_ended(call, attempt, reply),
            Event::Timeout { call, attempt } => self.attempt_timed_out(call, attempt),
            Event::Resend { call, attempt } => self.resend(call, attempt),
            Event::Change(number) => self.change(number),
        }
    }

    const fn timestamp(&self) -> Timestamp {
        Timestamp::from_nanos(self.now)
    }
}
