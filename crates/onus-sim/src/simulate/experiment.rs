//! All runs of a scenario: each policy, each value of the sweep, each seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::engine::World;
use super::outcome::{Outcome, Tally, summarize};
use super::plan::Plan;
use super::scenario::Scenario;

/// What came of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The scenario.
    pub scenario: String,
    /// What it shows.
    pub about: String,
    /// The parameter that is swept.
    pub parameter: Option<&'static str>,
    /// The policy that all are compared with.
    pub against: Option<String>,
    /// Runs of each policy that were asked for.
    pub seeds: u32,
    /// Whether it was interrupted, so that runs are missing.
    pub partial: bool,
    /// One for each policy, and each value of the sweep.
    pub outcomes: Vec<Outcome>,
}

/// How to run a scenario.
pub struct RunOptions<'a> {
    /// How many runs are made at the same time. The result does not depend on it.
    pub threads: usize,
    /// Set to stop early.
    pub stop: &'a AtomicBool,
    /// Told of each run that is done.
    pub progress: &'a (dyn Fn() + Sync),
}

/// Runs a scenario.
#[must_use]
pub fn run(scenario: &Scenario, options: &RunOptions<'_>) -> Experiment {
    let plans: Vec<_> = scenario
        .cells
        .iter()
        .flat_map(|cell| cell.plans.iter().map(|plan| (cell.value, plan)))
        .collect();
    let seeds = scenario.seeds as usize;
    let tallies = all_tallies(&plans, seeds, options);
    let outcomes =
        plans.iter().zip(tallies.chunks(seeds)).filter_map(|((value, plan), tallies)| {
            let tallies: Vec<_> = tallies.iter().flatten().cloned().collect();
            summarize(plan, *value, &tallies)
        });
    let mut outcomes: Vec<_> = outcomes.collect();
    if let Some(against) = &scenario.against {
        compare(&mut outcomes, against);
    }
    Experiment {
        scenario: scenario.name.clone(),
        about: scenario.about.trim().to_owned(),
        parameter: scenario.parameter,
        against: scenario.against.clone(),
        seeds: scenario.seeds,
        partial: tallies.iter().any(|tally| tally.as_ref().is_none_or(|tally| tally.interrupted)),
        outcomes,
    }
}

/// Says of each outcome what it has stopped of what `against` sent at the same value of the sweep.
fn compare(outcomes: &mut [Outcome], against: &str) {
    let others: Vec<_> =
        outcomes.iter().filter(|outcome| outcome.policy == against).cloned().collect();
    for outcome in outcomes {
        let other = others.iter().find(|other| other.value == outcome.value);
        outcome.stopped = other.map(|other| outcome.stopped_of(other));
    }
}

/// The counts of all runs, in the order of plans and seeds, whoever was done first.
fn all_tallies(
    plans: &[(Option<f64>, &Plan)],
    seeds: usize,
    options: &RunOptions<'_>,
) -> Vec<Option<Tally>> {
    let count = plans.len() * seeds;
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; count]);
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= count {
                return;
            }
            // Policies take turns, so that an interrupted experiment compares what it has.
            let (plan, seed) = (job % plans.len(), job / plans.len());
            let world = World::new(plans[plan].1, seed as u64 + 1);
            let tally = world.run(options.stop);
            let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            done[plan * seeds + seed] = Some(tally);
            drop(done);
            (options.progress)();
            // Looked at last, so that whoever stops early is shown something.
            if options.stop.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.threads.max(1) {
            scope.spawn(work);
        }
        work();
    });
    done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
