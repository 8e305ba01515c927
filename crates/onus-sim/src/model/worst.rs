//! The most requests that an adversary can bring to one node, without running every trace.
//!
//! What a request costs below a node depends on the mark and on nothing else, and its caller sees
//! one of a few answers. So each node, callees first, is run once with every answer that its callees
//! can give, and remembers the dearest way to each answer of its own. That is exact where nothing
//! is shared between requests and no layer below retries, and takes chains and meshes that are out
//! of reach of an enumeration.

use super::choice::Tape;
use super::config::Config;
use super::rules::Rules;
use super::run::{Answer, Callees, Request, Runner};
use super::seen::{Event, Log, Seen};

/// The answers that every node can give, and the dearest way to each.
pub(crate) struct Known {
    /// The node whose requests are counted.
    pub(super) target: usize,
    /// By node, unmarked and marked.
    ways: Vec<[Vec<Way>; 2]>,
    /// How often a node was run.
    pub(crate) runs: u64,
}

/// An answer, what it costs, and the choices at the node that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) answer: Answer,
    pub(super) requests: u32,
    pub(super) tape: Vec<u8>,
}

impl Known {
    /// Finds the dearest ways to `target`; `None` where a node has more than `runs_max` ways to
    /// combine the answers of its callees.
    pub(crate) fn new(config: &Config, rules: Rules, target: usize, runs_max: u64) -> Option<Self> {
        let nodes = config.topology.nodes();
        let ways = (0..nodes).map(|_| [Vec::new(), Vec::new()]).collect();
        let mut known = Self { target, ways, runs: 0 };
        for node in (0..nodes).rev() {
            for marked in [false, true] {
                let ways = known.ways_of(node, marked, config, rules, runs_max)?;
                known.ways[node][usize::from(marked)] = ways;
            }
        }
        Some(known)
    }

    fn ways_of(
        &mut self,
        node: usize,
        marked: bool,
        config: &Config,
        rules: Rules,
        runs_max: u64,
    ) -> Option<Vec<Way>> {
        let mut ways: Vec<Way> = Vec::new();
        let mut runner = Runner::new(config, rules, Tape::default(), ());
        runner.callees = Callees::Known(self);
        let mut runs = 0;
        loop {
            let answer = runner.serve(node, marked);
            let requests = runner.seen.requests[self.target];
            match ways.iter_mut().find(|way| way.answer == answer) {
                Some(way) if way.requests >= requests => {}
                Some(way) => {
                    way.requests = requests;
                    way.tape = runner.tape.taken().collect();
                }
                None => {
                    ways.push(Way { answer, requests, tape: runner.tape.taken().collect() });
                }
            }
            runs += 1;
            if runs > runs_max {
                return None;
            }
            if !runner.tape.advance() {
                break;
            }
        }
        self.runs += runs;
        Some(ways)
    }

    pub(super) fn ways(&self, node: usize, marked: bool) -> &[Way] {
        &self.ways[node][usize::from(marked)]
    }

    fn dearest(&self) -> Option<&Way> {
        self.ways(0, false).iter().max_by_key(|way| way.requests)
    }

    /// The most requests that the target can get.
    pub(crate) fn most(&self) -> u32 {
        self.dearest().map_or(0, |way| way.requests)
    }

    /// Runs a trace in which the target gets as many.
    pub(super) fn script(&self, config: &Config, rules: Rules) -> (Seen, Vec<Event>) {
        let tape = self.dearest().map_or_else(Tape::default, |way| Tape::of(&way.tape));
        let mut runner = Runner::new(config, rules, tape, Vec::new());
        runner.callees = Callees::Scripted(self);
        runner.serve(0, false);
        (runner.seen, runner.log)
    }
}

impl<L: Log> Runner<'_, L> {
    /// A node serves one request, and nothing else happens.
    fn serve(&mut self, node: usize, marked: bool) -> Answer {
        self.seen.clear(self.config.topology.nodes());
        self.handle(node, Request { marked, attempt: 1, place: 1 }).answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::bounds::Case;
    use crate::model::config::Role;
    use crate::model::counterexample::Replay;
    use crate::model::slice::Slice;

    /// The most requests at each node over all traces.
    fn by_enumeration(config: &Config) -> Vec<u32> {
        let mut most = vec![0; config.topology.nodes()];
        let mut runner = Runner::new(config, Rules::Shipped, Tape::default(), ());
        loop {
            runner.trace();
            for (most, &seen) in most.iter_mut().zip(&runner.seen.requests) {
                *most = seen.max(*most);
            }
            if !runner.tape.advance() {
                return most;
            }
        }
    }

    #[test]
    fn as_many_requests_as_the_dearest_of_all_traces() {
        for (slice, nodes) in [
            ("policies-class", 3),
            ("silence", 4),
            ("silence-coverage", 3),
            ("diamonds-silence", 5),
        ] {
            let space = Slice::named(slice).expect("a slice of this name").space(nodes);
            for index in (0..space.count()).step_by(7) {
                let config = space.config(index).expect("a number below the count");
                if config.roles.iter().any(|role| role.layer().is_some()) {
                    continue;
                }
                for (target, most) in by_enumeration(&config).into_iter().enumerate() {
                    let known = Known::new(&config, Rules::Shipped, target, u64::MAX);
                    let known = known.expect("no bound on its runs");
                    assert_eq!(known.most(), most, "{slice}.{nodes}.{index} at {target}");
                    let (seen, _) = known.script(&config, Rules::Shipped);
                    assert_eq!(seen.requests[target], most, "{slice}.{nodes}.{index} at {target}");
                }
            }
        }
    }

    /// A chain in which answers get lost, with these nodes of a role.
    fn silent_chain(nodes: usize, role: Role, at: &[usize]) -> Config {
        let space = Slice::named("chains").expect("the slice").space(nodes);
        let mut config = space.config(0).expect("a first configuration");
        for &node in at {
            config.roles[node] = role;
        }
        config
    }

    #[test]
    fn bounds_of_lost_answers_are_reached() {
        for (nodes, role, at, most) in [
            (7, Role::Correlated, &[][..], vec![1, 2, 3, 4, 5, 6, 7]),
            (5, Role::ContextLost, &[2], vec![1, 2, 4, 8, 12]),
            (4, Role::Observing, &[1, 2], vec![1, 2, 4, 8]),
        ] {
            let config = silent_chain(nodes, role, at);
            let case = Case::new(&config);
            for (target, most) in most.into_iter().enumerate() {
                let known = Known::new(&config, Rules::Shipped, target, u64::MAX);
                assert_eq!(known.map(|known| known.most()), Some(most), "{at:?} at {target}");
                let bound = match role {
                    Role::Observing => case.for_observers(target),
                    Role::Correlated | Role::ContextLost => case.for_lost_segments(target),
                    Role::NonCooperative
                    | Role::ObeyingLayer
                    | Role::BlindLayer
                    | Role::ObeyingLibrary => continue,
                };
                assert_eq!(bound, u64::from(most), "{at:?} at {target}");
            }
        }
    }

    #[test]
    fn every_level_times_out() {
        // Six hops, and context lost at so many services next to the root.
        for (lost, leaf) in [(0, 7), (1, 12), (2, 20), (3, 32), (4, 48), (5, 64)] {
            let config = silent_chain(7, Role::ContextLost, &(1..=lost).collect::<Vec<_>>());
            let replay = Replay::run(Rules::Shipped, config.clone(), &[1; 500]);
            assert_eq!(replay.seen.requests[6], leaf, "{lost} lost");
            assert_eq!(Case::new(&config).for_timeouts(6), u64::from(leaf), "{lost} lost");
        }
    }
}
