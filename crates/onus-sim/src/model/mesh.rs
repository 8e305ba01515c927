//! The services and edges of a user: what the failure of each service costs, at worst.

use std::collections::{BTreeMap, BTreeSet};

use super::config::{Config, Faults};
use super::counterexample::Replay;
use super::rules::Rules;
use super::seen::Event;
use super::worst::Known;

/// Services that call each other, with their policies.
#[derive(Clone, Debug)]
pub struct Mesh {
    config: Config,
}

/// What the failures of one service come to, per request of a client; `None` where they combine in
/// too many ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfService {
    /// The service.
    pub service: String,
    /// It fails on every call.
    pub fails: Option<Load>,
    /// It fails whenever that is dearest.
    pub fails_at_will: Option<Load>,
    /// Any answers in the mesh get lost.
    pub lost: Option<Load>,
    /// Whether the retries of several hops multiply when it fails on every call: it gets more
    /// requests along one way than any hop of that way makes attempts.
    pub multiplies: bool,
    /// Where it is retried when it fails on every call; `None` where that is too much to tell.
    pub retried: Option<Vec<String>>,
}

/// The most requests that a service gets for one request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// As configured.
    pub requests: u32,
    /// If every service were in mode off.
    pub without: u32,
}

impl Mesh {
    pub(super) const fn new(config: Config) -> Self {
        Self { config }
    }

    /// How many services there are.
    #[must_use]
    pub fn services(&self) -> usize {
        self.config.topology.nodes()
    }

    /// What the failures of each service but the entry come to.
    #[must_use]
    pub fn check(&self) -> Vec<OfService> {
        let mut found: Vec<OfService> = Vec::new();
        for node in 1..self.services() {
            // The answers that can get lost are the same for every service.
            let wide = found.last().is_some_and(|of| of.lost.is_none());
            let lost = if wide { None } else { self.load(Trouble::Lost, node) };
            found.push(self.of_service(node, lost));
        }
        found
    }

    fn of_service(&self, node: usize, lost: Option<Load>) -> OfService {
        let fails = self.load(Trouble::Fails, node);
        let told = fails.filter(|load| load.requests <= TOLD_MAX);
        let told = told.map(|_| self.attempts_by_way(node));
        // Nobody configures so many ways.
        let multiplies = told.as_ref().is_none_or(|ways| self.multiply(ways));
        OfService {
            service: self.config.topology.name(node).to_owned(),
            fails,
            fails_at_will: self.load(Trouble::FailsAtWill, node),
            lost,
            multiplies,
            retried: told.map(|ways| self.retried(&ways)),
        }
    }

    fn load(&self, trouble: Trouble, node: usize) -> Option<Load> {
        let config = self.with(trouble, node);
        let most = |rules| Some(Known::new(&config, rules, node, RUNS_MAX)?.most());
        Some(Load { requests: most(Rules::Shipped)?, without: most(Rules::NoOwnership)? })
    }

    /// The attempts at a service that fails on every call, each with the way on which it came, and
    /// at the services on that way.
    fn attempts_by_way(&self, node: usize) -> BTreeMap<Vec<usize>, u32> {
        let mut ways = BTreeMap::new();
        let config = self.with(Trouble::Fails, node);
        let Some(replay) = Replay::dearest(Rules::Shipped, config, node) else { return ways };
        let mut way = Vec::new();
        for event in &replay.events {
            match *event {
                Event::Sent { edge, .. } => {
                    way.push(edge);
                    *ways.entry(way.clone()).or_default() += 1;
                }
                Event::Answers { .. } => {
                    way.pop();
                }
                Event::Decided { .. } | Event::Layer { .. } | Event::Dropped { .. } => {}
            }
        }
        let is_on_the_way = |way: &[usize]| {
            let to = |&edge: &usize| self.config.topology.edges()[edge].to;
            way.last().map(to) == Some(node)
        };
        let whole: Vec<_> = ways.keys().filter(|way| is_on_the_way(way)).cloned().collect();
        ways.retain(|way, _| whole.iter().any(|whole| whole.starts_with(way)));
        ways
    }

    /// Whether more requests came on a way than any hop of it makes attempts.
    fn multiply(&self, ways: &BTreeMap<Vec<usize>, u32>) -> bool {
        ways.iter().any(|(way, &requests)| {
            let attempts = way.iter().map(|&edge| self.config.edges[edge].retries.attempts());
            attempts.max().is_some_and(|most| requests > most)
        })
    }

    /// The edges on which retries were made.
    fn retried(&self, ways: &BTreeMap<Vec<usize>, u32>) -> Vec<String> {
        let requests = |way: &[usize]| ways.get(way).copied().unwrap_or(1);
        let retried = ways.iter().filter_map(|(way, &made)| {
            let (edge, before) = way.split_last()?;
            (made > requests(before)).then_some(*edge)
        });
        let topology = &self.config.topology;
        let ends = retried.collect::<BTreeSet<_>>().into_iter().map(|edge| topology.edges()[edge]);
        let name = |node| topology.name(node);
        ends.map(|ends| format!("{} -> {}", name(ends.from), name(ends.to))).collect()
    }

    /// The trace of this id; `None` where none has it, or it is too long to be read.
    #[must_use]
    pub fn rerun(&self, id: &str) -> Option<Replay> {
        let (trouble, service) = id.split_once(':')?;
        let trouble = Trouble::ALL.into_iter().find(|known| known.as_str() == trouble)?;
        let node = (1..self.services()).find(|&node| self.config.topology.name(node) == service)?;
        let config = self.with(trouble, node);
        let known = Known::new(&config, Rules::Shipped, node, RUNS_MAX)?;
        if known.most() > TOLD_MAX {
            return None;
        }
        Replay::dearest(Rules::Shipped, config, node)
    }

    fn with(&self, trouble: Trouble, node: usize) -> Config {
        let faults = match trouble {
            Trouble::Fails => Faults { always: true, among: 1 << node, ..Faults::OWN },
            Trouble::FailsAtWill => Faults { among: 1 << node, ..Faults::OWN },
            Trouble::Lost => Faults { own: false, lost: true, ..Faults::OWN },
        };
        Config { faults, ..self.config.clone() }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Fails,
    FailsAtWill,
    Lost,
}

impl Trouble {
    const ALL: [Self; 3] = [Self::Fails, Self::FailsAtWill, Self::Lost];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::FailsAtWill => "fails-at-will",
            Self::Lost => "lost",
        }
    }
}

/// Ways to combine the answers of one service's callees; a second of work.
const RUNS_MAX: u64 = 300_000;
/// A trace with more requests at the service is not read by anybody.
const TOLD_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(yaml: &str) -> Mesh {
        Mesh::from_yaml("mesh.yaml", yaml).expect("a mesh")
    }

    const CHAIN: &str = "entry: a
edges:
  - {from: a, to: b, attempts: 2}
  - {from: b, to: c, attempts: 2}
  - {from: c, to: d, attempts: 2}
";

    #[test]
    fn requests_of_a_chain_are_those_of_the_protocol() {
        for (services, fails, lost, retried) in [
            ("", [2, 2, 2], [2, 3, 4], "c -> d"),
            ("services: [{name: c, context: lost}]", [2, 2, 4], [2, 4, 8], "b -> c, c -> d"),
            ("services: [{name: c, mode: observe}]", [2, 2, 2], [2, 3, 6], "c -> d"),
            ("services: [{name: b, mode: off}]", [2, 4, 8], [2, 4, 8], "a -> b, b -> c, c -> d"),
        ] {
            let found = mesh(&format!("{CHAIN}{services}\n")).check();
            let load = |load: Option<Load>| load.expect("a chain is narrow");
            let requests: Vec<_> = found.iter().map(|of| load(of.fails).requests).collect();
            assert_eq!(requests, fails, "{services}");
            let requests: Vec<_> = found.iter().map(|of| load(of.lost).requests).collect();
            assert_eq!(requests, lost, "{services}");
            let without: Vec<_> = found.iter().map(|of| load(of.fails).without).collect();
            assert_eq!(without, [2, 4, 8], "{services}");
            let told = found[2].retried.as_ref().map(|edges| edges.join(", "));
            assert_eq!(told.as_deref(), Some(retried), "{services}");
            for of in found {
                let above = load(of.fails).requests > 2;
                assert_eq!(of.multiplies, above, "{services}: {}", of.service);
            }
        }
    }

    #[test]
    fn a_trace_is_run_again_by_its_id() {
        let mesh = mesh(&format!("{CHAIN}services: [{{name: c, context: lost}}]\n"));
        let replay = mesh.rerun("fails:d").expect("a trace");
        assert!(replay.text().ends_with("requests: a 1, b 1, c 2, d 4\n"), "{}", replay.text());
        for id in ["fails:a", "fails:x", "burns:d", "d"] {
            assert!(mesh.rerun(id).is_none(), "{id}");
        }
    }

    #[test]
    fn wide_and_deep_meshes_end() {
        let deep = (0..60).map(|at| format!("  - {{from: s{at}, to: s{}, attempts: 2}}\n", at + 1));
        let deep = format!("entry: s0\nedges:\n{}", deep.collect::<String>());
        let leaf = mesh(&deep).check().pop().expect("a service");
        assert_eq!(leaf.fails, Some(Load { requests: 2, without: u32::MAX }));
        assert_eq!(leaf.lost.map(|load| load.requests), Some(61));
        let wide = (0..30).map(|to| format!("  - {{from: a, to: w{to}, attempts: 3}}\n"));
        let wide = wide.collect::<String>();
        let wide = format!("entry: a\nservices: [{{name: a, calls: parallel}}]\nedges:\n{wide}");
        let leaf = mesh(&wide).check().pop().expect("a service");
        assert_eq!(leaf.fails, Some(Load { requests: 3, without: 3 }));
        assert_eq!(leaf.lost, None);
    }
}
