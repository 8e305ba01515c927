//! Runs every trace of every configuration of a slice, and judges it by every property.

use std::sync::atomic::{AtomicU64, Ordering};

use super::bounds::Case;
use super::choice::Tape;
use super::config::{Config, Role};
use super::counterexample::Counterexample;
use super::property::Property;
use super::proviso::Provisos;
use super::rules::Rules;
use super::run::Runner;
use super::seen::Seen;
use super::slice::Slice;
use super::space::{Engine, Space};
use super::topology::Fan;
use super::worst::Known;

/// What to check, and by which rules.
#[derive(Clone, Debug)]
pub struct Check {
    /// The largest trees.
    pub nodes: usize,
    /// The rules; everything but [`Rules::Shipped`] is expected to break properties.
    pub rules: Rules,
    /// The properties.
    pub properties: Vec<Property>,
    /// How many threads work.
    pub threads: usize,
}

/// What a slice came to.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The configurations that were run.
    pub configurations: u64,
    /// The traces that were run.
    pub traces: u64,
    /// One entry per property of the check, in its order.
    pub properties: Vec<Finding>,
}

/// What a property came to.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// The traces that met its provisos.
    pub traces: u64,
    /// Those of them that broke it.
    pub violations: u64,
    /// The configurations with such traces.
    pub configurations: u64,
    /// The smallest of these.
    pub smallest: Option<Counterexample>,
}

impl Check {
    /// Up to `nodes` nodes by the shipped rules, every property.
    #[must_use]
    pub fn shipped(nodes: usize, threads: usize) -> Self {
        Self { nodes, rules: Rules::Shipped, properties: Property::all(), threads }
    }

    /// The configurations of a slice.
    #[must_use]
    pub fn configurations(&self, slice: &Slice) -> u64 {
        slice.sizes(self.nodes).map(|nodes| slice.space(nodes).count()).sum()
    }

    /// Checks a slice. `done` is told of configurations as they are done, from any thread.
    #[must_use]
    pub fn run(&self, slice: &'static Slice, done: &(dyn Fn(u64) + Sync)) -> Findings {
        let mut all = self.nothing();
        for nodes in slice.sizes(self.nodes) {
            let space = slice.space(nodes);
            let next = AtomicU64::new(0);
            let worker = || self.work(&space, &next, done);
            let parts = std::thread::scope(|scope| {
                let workers: Vec<_> = (1..self.threads).map(|_| scope.spawn(worker)).collect();
                let mut parts = vec![worker()];
                parts.extend(workers.into_iter().filter_map(|worker| worker.join().ok()));
                parts
            });
            assert_eq!(parts.len(), self.threads.max(1), "no worker panics");
            for part in parts {
                all.add(part.found(slice, nodes, self));
            }
        }
        all
    }

    fn nothing(&self) -> Findings {
        let properties = vec![Finding::default(); self.properties.len()];
        Findings { properties, ..Findings::default() }
    }

    /// Takes configurations until none is left.
    fn work(&self, space: &Space, next: &AtomicU64, done: &(dyn Fn(u64) + Sync)) -> Part {
        let mut part =
            Part { counts: vec![Count::default(); self.properties.len()], ..Part::default() };
        let mut tape = Tape::default();
        loop {
            let from = next.fetch_add(CHUNK, Ordering::Relaxed);
            let until = space.count().min(from + CHUNK);
            if from >= until {
                return part;
            }
            for index in from..until {
                if let Some(config) = space.config(index) {
                    tape = self.config(index, &config, space.engine, tape, &mut part);
                }
            }
            done(until - from);
        }
    }

    /// Judges a configuration by all of its traces, or by the dearest ones.
    fn config(
        &self,
        index: u64,
        config: &Config,
        engine: Engine,
        mut tape: Tape,
        part: &mut Part,
    ) -> Tape {
        part.configurations += 1;
        let judge = self.judge(index, config, engine);
        match engine {
            Engine::Traces => {
                tape.clear();
                let mut runner = Runner::new(config, self.rules, tape, ());
                loop {
                    runner.trace();
                    part.traces += 1;
                    judge.trace(&runner.seen, || runner.tape.taken().collect(), part);
                    if !runner.tape.advance() {
                        return runner.tape;
                    }
                }
            }
            Engine::Dearest => {
                let nodes = config.topology.nodes();
                for target in 1..nodes {
                    let Some(known) = Known::new(config, self.rules, target, u64::MAX) else {
                        continue;
                    };
                    part.traces += known.runs;
                    let mut seen = Seen::dearest(nodes);
                    seen.requests[target] = known.most();
                    judge.trace(&seen, || vec![target as u8], part);
                }
                tape
            }
        }
    }

    fn judge<'c>(&'c self, index: u64, config: &'c Config, engine: Engine) -> Judge<'c> {
        let met = Provisos::of_config(config);
        let properties = self.properties.iter().enumerate();
        // Of the dearest traces nothing is known but requests, and that answers get lost.
        let applies = |property: &Property| {
            (engine == Engine::Traces || property.needs.include(Provisos::LOST_ONLY))
                && met.include(property.needs.restricted_to(Provisos::OF_CONFIGS))
        };
        let checked = properties
            .filter(|(_, property)| applies(property))
            .map(|(at, property)| (at, property, property.needs.restricted_to(Provisos::OF_TRACES)))
            .collect();
        Judge { index, case: Case::new(config), complexity: complexity(config), checked }
    }
}

/// A configuration with the properties that it is judged by.
struct Judge<'c> {
    index: u64,
    case: Case<'c>,
    complexity: u32,
    /// The place, the property, and what it asks of traces.
    checked: Vec<(usize, &'c Property, Provisos)>,
}

impl Judge<'_> {
    fn trace(&self, seen: &Seen, tape: impl Fn() -> Vec<u8>, part: &mut Part) {
        let met = Provisos::of_trace(seen);
        for &(at, property, needs) in &self.checked {
            if !met.include(needs) {
                continue;
            }
            let count = &mut part.counts[at];
            count.traces += 1;
            if !property.is_broken(&self.case, seen) {
                continue;
            }
            count.violations += 1;
            if count.last != Some(self.index) {
                count.last = Some(self.index);
                count.configurations += 1;
            }
            let size = (self.complexity, seen.requests.iter().sum(), seen.failures, self.index);
            if count.smallest.as_ref().is_none_or(|(smallest, _)| size < *smallest) {
                count.smallest = Some((size, tape()));
            }
        }
    }
}

/// Configurations that a thread takes at a time.
const CHUNK: u64 = 16;

/// How much there is to read in a configuration: everything that is not ordinary.
fn complexity(config: &Config) -> u32 {
    let topology = &config.topology;
    let nodes = 0..topology.nodes();
    let fans = nodes.clone().filter(|&node| topology.fan(node) != Fan::Sequence).count();
    let wide = nodes.filter(|&node| topology.calls(node).len() > 1).count();
    let roles = config.roles.iter().filter(|&&role| role != Role::Correlated).count();
    let edges = config.edges.iter().map(|edge| {
        usize::from(!edge.retries.are_made())
            + usize::from(edge.open)
            + usize::from(edge.open == edge.held.is_blamed())
    });
    let switches = usize::from(config.switches.silent_claims) + usize::from(config.switches.probes);
    (fans + wide + 2 * roles + edges.sum::<usize>() + 2 * switches) as u32
}

/// What one thread has found in one space.
#[derive(Default)]
struct Part {
    configurations: u64,
    traces: u64,
    counts: Vec<Count>,
}

#[derive(Clone, Default)]
struct Count {
    traces: u64,
    violations: u64,
    configurations: u64,
    /// The configuration of the last violation.
    last: Option<u64>,
    smallest: Option<(Size, Vec<u8>)>,
}

/// Complexity of the configuration, requests, failures, number of the configuration.
type Size = (u32, u32, u32, u64);

impl Part {
    fn found(self, slice: &Slice, nodes: usize, check: &Check) -> Findings {
        let found = self.counts.into_iter().zip(&check.properties).map(|(count, property)| {
            let smallest = count.smallest.map(|(size, tape)| Counterexample {
                rules: check.rules,
                slice: slice.name,
                nodes,
                index: size.3,
                tape,
                property: property.name,
                size,
            });
            let Count { traces, violations, configurations, .. } = count;
            Finding { traces, violations, configurations, smallest }
        });
        Findings {
            configurations: self.configurations,
            traces: self.traces,
            properties: found.collect(),
        }
    }
}

impl Findings {
    /// Adds what another slice, or another part of it, came to.
    pub fn add(&mut self, other: Self) {
        self.configurations += other.configurations;
        self.traces += other.traces;
        if self.properties.is_empty() {
            self.properties = vec![Finding::default(); other.properties.len()];
        }
        for (mine, others) in self.properties.iter_mut().zip(other.properties) {
            mine.traces += others.traces;
            mine.violations += others.violations;
            mine.configurations += others.configurations;
            mine.smallest = match (mine.smallest.take(), others.smallest) {
                (Some(mine), Some(other)) if other.is_smaller_than(&mine) => Some(other),
                (Some(mine), _) => Some(mine),
                (None, other) => other,
            };
        }
    }
}
