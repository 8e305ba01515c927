//! Storm radius, amplification and reach (protocol §12), for all services at once.
//!
//! A *standing* is a service with what it answers. Each standing leads to those of its callers, and
//! whoever fails by itself stands at the start; the radius of a service is the most multiplying
//! steps on any way to it. Standings that lead round in a circle are taken together.

mod load;

use std::collections::{BTreeSet, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use crate::graph::{Coverage, Edge, Graph, ServiceId};
use crate::reading::{Answer, Ownership};

pub use load::Loads;

/// How far and how large a storm may get below a service, over every single culprit that fails
/// persistently and is seen to. Several culprits, and hangs, may exceed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Storm {
    /// The most hops on one path that multiply requests.
    pub radius: u32,
    /// The largest product of the attempts of those hops, a maximum of its own.
    pub amplification: f64,
    /// Hops from a culprit to the farthest hop that multiplies, a maximum of its own.
    pub reach: u32,
    /// A path with this radius, from the service down to the culprit.
    pub path: Vec<ServiceId>,
    /// Services through which a circle of calls multiplies without end; each is counted once.
    pub unbounded_through: Vec<ServiceId>,
}

/// How large a storm is, without the ways that make it so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StormSize {
    /// As [`Storm::radius`].
    pub radius: u32,
    /// As [`Storm::amplification`].
    pub amplification: f64,
    /// As [`Storm::reach`].
    pub reach: u32,
    /// Whether no circle of calls multiplies without end.
    pub is_bounded: bool,
}

/// The storms below every service of a graph.
#[derive(Clone, Debug)]
pub struct Storms {
    best: Vec<Best>,
    /// For each circle that multiplies, the services that renew a claim in it.
    circles: Vec<Vec<ServiceId>>,
}

/// The search for the worst, from those that fail up.
struct Search<'a> {
    standings: Standings<'a>,
    component_of: Vec<u32>,
    storms: Storms,
}

/// The standings of a graph and where they lead.
#[derive(Debug)]
struct Standings<'a> {
    graph: &'a Graph,
    ownership: Ownership,
    /// Edges lead up; they carry the attempts of a step that multiplies, else 1.
    steps: DiGraph<(), u32>,
}

/// The worst that leads to a standing.
#[derive(Clone, Copy, Debug, Default)]
struct Best {
    /// Whether anything leads here.
    reached: bool,
    radius: u32,
    amplification: f64,
    /// Hops from the farthest culprit.
    hops: u32,
    reach: u32,
    /// The standing before, on the way with this radius.
    before: Option<NodeIndex>,
    /// A circle that multiplies on a way here.
    circle: Option<u32>,
}

/// What going round once may add.
struct Round {
    radius: u32,
    amplification: f64,
    hops: u32,
    through: Vec<ServiceId>,
}

impl Graph {
    /// The storm below one service. For many, ask [`Self::storms`].
    #[must_use]
    pub fn storm(&self, service: ServiceId, ownership: Ownership) -> Storm {
        self.storms(ownership).below(service)
    }

    /// The storms below all services.
    #[must_use]
    pub fn storms(&self, ownership: Ownership) -> Storms {
        Search::all(Standings::of(self, ownership))
    }
}

impl<'a> Standings<'a> {
    fn of(graph: &'a Graph, ownership: Ownership) -> Self {
        let mut steps = DiGraph::with_capacity(graph.inner.node_count() * ANSWERS, 0);
        for _ in 0..graph.inner.node_count() * ANSWERS {
            steps.add_node(());
        }
        let mut standings = Self { graph, ownership, steps };
        let mut seen = vec![false; standings.steps.node_count()];
        let mut next: Vec<NodeIndex> = standings.starts().collect();
        next.iter().for_each(|start| seen[start.index()] = true);
        while let Some(standing) = next.pop() {
            let (callee, answer) = parts(standing);
            for (caller, edge) in graph.callers(callee) {
                let (multiplies, answer) =
                    answer.up(standings.coverage(caller), ownership.on(edge));
                let above = standing_of(caller, answer);
                standings.steps.add_edge(
                    standing,
                    above,
                    if multiplies { edge.attempts } else { 1 },
                );
                if !std::mem::replace(&mut seen[above.index()], true) {
                    next.push(above);
                }
            }
        }
        standings
    }

    /// Where everybody stands who fails by itself.
    fn starts(&self) -> impl Iterator<Item = NodeIndex> {
        self.graph
            .inner
            .node_indices()
            .map(|culprit| standing_of(culprit, Answer::of_culprit(self.coverage(culprit))))
    }

    fn coverage(&self, service: NodeIndex) -> Coverage {
        self.ownership.of(self.graph.inner[service].coverage)
    }
}

impl Storms {
    /// The storm below `service`.
    ///
    /// # Panics
    ///
    /// If the service is of another graph.
    #[must_use]
    pub fn below(&self, service: ServiceId) -> Storm {
        let StormSize { radius, amplification, reach, .. } = self.size_below(service);
        let reached = || self.standings(service).filter(|(_, best)| best.reached);
        let worst = reached().find(|(_, best)| best.radius == radius);
        let circle = reached().find_map(|(_, best)| best.circle);
        Storm {
            radius,
            amplification,
            reach,
            path: worst.map(|(standing, _)| self.path(standing)).unwrap_or_default(),
            unbounded_through: circle
                .map(|circle| self.circles[circle as usize].clone())
                .unwrap_or_default(),
        }
    }

    /// How large the storm below `service` is; at no cost.
    ///
    /// # Panics
    ///
    /// If the service is of another graph.
    #[must_use]
    pub fn size_below(&self, service: ServiceId) -> StormSize {
        let mut size = StormSize { radius: 0, amplification: 1.0, reach: 0, is_bounded: true };
        for (_, best) in self.standings(service).filter(|(_, best)| best.reached) {
            size.radius = size.radius.max(best.radius);
            size.amplification = size.amplification.max(best.amplification);
            size.reach = size.reach.max(best.reach);
            size.is_bounded &= best.circle.is_none();
        }
        size
    }

    fn standings(&self, service: ServiceId) -> impl Iterator<Item = (NodeIndex, &Best)> {
        Answer::ALL.into_iter().map(move |answer| {
            let standing = standing_of(service.0, answer);
            (standing, &self.best[standing.index()])
        })
    }

    /// The services on the way with the largest radius, from this standing down.
    fn path(&self, standing: NodeIndex) -> Vec<ServiceId> {
        let before = |standing: &NodeIndex| self.best[standing.index()].before;
        let way = std::iter::successors(Some(standing), before);
        way.map(|standing| ServiceId(parts(standing).0)).collect()
    }
}

impl<'a> Search<'a> {
    fn all(standings: Standings<'a>) -> Storms {
        let mut best = vec![Best::default(); standings.steps.node_count()];
        for start in standings.starts() {
            best[start.index()] = Best { reached: true, amplification: 1.0, ..Best::default() };
        }
        // The last component leads nowhere but up.
        let components = kosaraju_scc(&standings.steps);
        let mut component_of = vec![0; best.len()];
        for (number, component) in components.iter().enumerate() {
            component.iter().for_each(|standing| component_of[standing.index()] = number as u32);
        }
        let storms = Storms { best, circles: Vec::new() };
        let mut search = Self { standings, component_of, storms };
        for component in components.iter().rev() {
            search.go_round(component);
            for &standing in component {
                search.go_up(standing);
            }
        }
        search.storms
    }

    /// Takes the standings of a component for one: whoever leads into it leads to all of them.
    fn go_round(&mut self, component: &[NodeIndex]) {
        let Some(round) = self.round(component) else { return };
        let entries =
            || component.iter().filter(|standing| self.storms.best[standing.index()].reached);
        let Some(&entry) =
            entries().max_by_key(|standing| self.storms.best[standing.index()].radius)
        else {
            return;
        };
        let into = |of: fn(&Best) -> u32| {
            entries().map(|standing| of(&self.storms.best[standing.index()])).max().unwrap_or(0)
        };
        let hops = into(|best| best.hops) + round.hops;
        let multiplies = round.radius > 0;
        let amplification = entries()
            .map(|standing| self.storms.best[standing.index()].amplification)
            .fold(1.0, f64::max);
        let circle = match multiplies {
            true => {
                self.storms.circles.push(round.through);
                Some(self.storms.circles.len() as u32 - 1)
            }
            false => entries().find_map(|standing| self.storms.best[standing.index()].circle),
        };
        let all = Best {
            reached: true,
            radius: into(|best| best.radius) + round.radius,
            amplification: amplification * round.amplification,
            hops,
            reach: if multiplies { hops } else { into(|best| best.reach) },
            before: None,
            circle,
        };
        let before = self.storms.best[entry.index()].before;
        for standing in component {
            self.storms.best[standing.index()] = all;
        }
        self.lead_round(entry);
        self.storms.best[entry.index()].before = before;
    }

    /// Says how each standing of a component is reached from its entry, on the shortest way.
    fn lead_round(&mut self, entry: NodeIndex) {
        let mut next = VecDeque::from([entry]);
        while let Some(at) = next.pop_front() {
            for above in self.standings.steps.neighbors(at) {
                let same = self.component_of[above.index()] == self.component_of[entry.index()];
                let before = &mut self.storms.best[above.index()].before;
                if same && above != entry && before.is_none() {
                    *before = Some(at);
                    next.push_back(above);
                }
            }
        }
    }

    /// What going round adds; `None` where nothing leads round.
    ///
    /// Each service that renews a claim is counted once, and whoever reads a claim that comes from
    /// outside; there are no more multiplications than callers that make them.
    fn round(&self, component: &[NodeIndex]) -> Option<Round> {
        let number = self.component_of[component.first()?.index()];
        let inside: Vec<_> = component
            .iter()
            .flat_map(|&standing| self.standings.steps.edges(standing))
            .filter(|step| self.component_of[step.target().index()] == number)
            .collect();
        if inside.is_empty() {
            return None;
        }
        let services: BTreeSet<_> = component.iter().map(|&standing| parts(standing).0).collect();
        let steps = inside.iter().filter(|step| *step.weight() > 1);
        let multiplying: BTreeSet<_> = steps.map(|step| parts(step.target()).0).collect();
        let renews = |&service: &NodeIndex| {
            let held = |edge: &Edge| edge.held_fail_open && !edge.fail_open;
            self.standings.coverage(service) != Coverage::Enforcing
                || self
                    .standings
                    .graph
                    .inner
                    .edges(service)
                    .any(|edge| held(&self.standings.ownership.on(*edge.weight())))
        };
        let through: Vec<_> = services.iter().copied().filter(renews).map(ServiceId).collect();
        let radius = multiplying.len().min(through.len() + 1);
        let attempts = inside.iter().map(|step| *step.weight()).max().unwrap_or(1);
        Some(Round {
            radius: radius as u32,
            amplification: f64::from(attempts).powi(radius as i32),
            hops: services.len() as u32,
            through,
        })
    }

    /// Hands the worst of a standing on to those above it.
    fn go_up(&mut self, standing: NodeIndex) {
        let from = self.storms.best[standing.index()];
        let number = self.component_of[standing.index()];
        for step in self.standings.steps.edges(standing) {
            if !from.reached || self.component_of[step.target().index()] == number {
                continue;
            }
            let multiplies = *step.weight() > 1;
            let hops = from.hops + 1;
            let above = &mut self.storms.best[step.target().index()];
            let radius = from.radius + u32::from(multiplies);
            if !above.reached || radius > above.radius {
                above.radius = radius;
                above.before = Some(standing);
            }
            let amplification = from.amplification * f64::from(*step.weight());
            above.amplification = above.amplification.max(amplification);
            above.hops = above.hops.max(hops);
            above.reach = above.reach.max(if multiplies { hops } else { from.reach });
            above.circle = above.circle.or(from.circle);
            above.reached = true;
        }
    }
}

/// What a service may answer.
const ANSWERS: usize = Answer::ALL.len();

fn standing_of(service: NodeIndex, answer: Answer) -> NodeIndex {
    NodeIndex::new(service.index() * ANSWERS + answer as usize)
}

fn parts(standing: NodeIndex) -> (NodeIndex, Answer) {
    let answer = Answer::ALL[standing.index() % ANSWERS];
    (NodeIndex::new(standing.index() / ANSWERS), answer)
}
