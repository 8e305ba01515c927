//! Storms against brute force: every way from every culprit, walked one by one.

mod published;

use onus_graph::{Coverage, Edge, Graph, Ownership, Service, ServiceId, Storm};
use proptest::prelude::*;

/// The most that any way to a service comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Worst {
    radius: u32,
    amplification: f64,
    reach: u32,
}

/// What the caller reads, spelt out a second time from the sentences of protocol §12.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Claimed,
    Unclaimed,
    Missing,
}

/// Which ways are walked.
#[derive(Clone, Copy)]
enum Ways {
    /// Those of at most so many hops.
    UpTo(usize),
    /// Those that pass each service once.
    Simple,
}

/// Walks every way that leads from a culprit up to `service`.
fn brute_force(graph: &Graph, service: ServiceId, ways: Ways) -> Worst {
    let mut worst = Worst { radius: 0, amplification: 1.0, reach: 0 };
    for (culprit, it) in graph.services() {
        let state = match it.coverage {
            Coverage::NonCooperative => State::Missing,
            Coverage::Enforcing | Coverage::Observing | Coverage::ContextLost => State::Claimed,
        };
        let mut way = Way { graph, goal: service, ways, passed: vec![culprit], worst };
        way.walk(Some(state), Worst { radius: 0, amplification: 1.0, reach: 0 });
        worst = way.worst;
    }
    worst
}

/// A way under the feet.
struct Way<'a> {
    graph: &'a Graph,
    goal: ServiceId,
    ways: Ways,
    passed: Vec<ServiceId>,
    worst: Worst,
}

impl Way<'_> {
    fn walk(&mut self, state: Option<State>, so_far: Worst) {
        let at = *self.passed.last().expect("the culprit is on the way");
        if at == self.goal {
            self.worst.radius = self.worst.radius.max(so_far.radius);
            self.worst.amplification = self.worst.amplification.max(so_far.amplification);
            self.worst.reach = self.worst.reach.max(so_far.reach);
        }
        for (caller, _, edge) in self.graph.edges().filter(|(_, callee, _)| *callee == at) {
            let goes_on = match self.ways {
                Ways::UpTo(hops) => self.passed.len() <= hops,
                Ways::Simple => !self.passed.contains(&caller),
            };
            if goes_on {
                let (up, next) = self.step(state, so_far, caller, edge);
                self.passed.push(caller);
                self.walk(up, next);
                self.passed.pop();
            }
        }
    }

    fn step(
        &self,
        state: Option<State>,
        so_far: Worst,
        caller: ServiceId,
        edge: &Edge,
    ) -> (Option<State>, Worst) {
        let Some(read) = state else { return (None, so_far) };
        let coverage = self.graph.service(caller).expect("it is of this graph").coverage;
        let blind = matches!(coverage, Coverage::NonCooperative | Coverage::Observing);
        let multiplies = edge.attempts >= 2 && (blind || read != State::Unclaimed);
        let mut next = so_far;
        if multiplies {
            next.radius += 1;
            next.amplification *= f64::from(edge.attempts);
            next.reach = self.passed.len() as u32;
        }
        let up = if edge.fail_open {
            None
        } else if coverage == Coverage::NonCooperative {
            Some(State::Missing)
        } else if coverage == Coverage::ContextLost || edge.held_fail_open {
            Some(State::Claimed)
        } else if multiplies || read == State::Unclaimed {
            Some(State::Unclaimed)
        } else {
            Some(State::Claimed)
        };
        (up, next)
    }
}

fn coverage() -> impl Strategy<Value = Coverage> {
    prop_oneof![
        4 => Just(Coverage::Enforcing),
        1 => Just(Coverage::Observing),
        1 => Just(Coverage::ContextLost),
        1 => Just(Coverage::NonCooperative),
    ]
}

fn edge() -> impl Strategy<Value = Edge> {
    (1..=3_u32, any::<bool>(), any::<bool>(), 0..4_u8).prop_map(|(attempts, open, held, rare)| {
        let edge = Edge::retrying(attempts);
        match rare {
            0 => Edge { fail_open: open, held_fail_open: held, ..edge },
            _ => edge,
        }
    })
}

/// A few services; edges from each to those behind it, or anywhere.
fn graphs(most: usize, circles: bool) -> impl Strategy<Value = Graph> {
    (1..=most).prop_flat_map(move |count| {
        let services = prop::collection::vec(coverage(), count);
        let edges = prop::collection::vec((0..count, 0..count, edge()), 0..=2 * count);
        (services, edges).prop_map(move |(services, edges)| {
            let mut graph = Graph::new();
            let ids: Vec<_> = services
                .into_iter()
                .enumerate()
                .map(|(n, coverage)| {
                    graph.add_service(Service::new(n.to_string()).covered(coverage))
                })
                .collect();
            for (caller, callee, edge) in edges {
                if circles || caller < callee {
                    graph.add_edge(ids[caller], ids[callee], edge);
                }
            }
            graph
        })
    })
}

fn as_worst(storm: &Storm) -> Worst {
    Worst { radius: storm.radius, amplification: storm.amplification, reach: storm.reach }
}

/// The radius of one path, walked from its culprit up over the edges that suit best.
fn assert_path_has_the_radius(graph: &Graph, storm: &Storm) {
    let Some(&goal) = storm.path.first() else { panic!("there is always a path") };
    let mut only = Graph::new();
    let ids: Vec<_> = graph.services().map(|(_, it)| only.add_service(it.clone())).collect();
    let place = |id: ServiceId| graph.services().position(|(other, _)| other == id).expect("known");
    for pair in storm.path.windows(2) {
        for (caller, callee, edge) in graph.edges() {
            if (caller, callee) == (pair[0], pair[1]) {
                only.add_edge(ids[place(caller)], ids[place(callee)], *edge);
            }
        }
    }
    let found = only.storm(ids[place(goal)], Ownership::AsIs);
    assert!(found.radius >= storm.radius, "{storm:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn without_circles_it_is_brute_force(graph in graphs(6, false)) {
        let storms = graph.storms(Ownership::AsIs);
        for (service, _) in graph.services() {
            let storm = storms.below(service);
            prop_assert_eq!(as_worst(&storm), brute_force(&graph, service, Ways::Simple), "{:?}", service);
            prop_assert!(storm.unbounded_through.is_empty());
            assert_path_has_the_radius(&graph, &storm);
        }
    }

    #[test]
    fn circles_are_bounded_exactly_where_nothing_renews_a_claim(graph in graphs(5, true)) {
        let storms = graph.storms(Ownership::AsIs);
        for (service, _) in graph.services() {
            let storm = storms.below(service);
            let simple = brute_force(&graph, service, Ways::Simple);
            prop_assert!(storm.radius >= simple.radius, "{:?} {:?}", storm, simple);
            prop_assert!(storm.amplification >= simple.amplification, "{:?} {:?}", storm, simple);
            if storm.unbounded_through.is_empty() {
                let round = brute_force(&graph, service, Ways::UpTo(9));
                prop_assert_eq!(storm.radius, round.radius, "{:?}", storm);
                prop_assert_eq!(storm.amplification, round.amplification, "{:?}", storm);
            }
        }
    }

    #[test]
    fn ownership_everywhere_leaves_one_hop(graph in graphs(5, true)) {
        let storms = graph.storms(Ownership::Everywhere);
        for (service, _) in graph.services() {
            let storm = storms.below(service);
            prop_assert!(storm.radius <= 1);
            prop_assert!(storm.unbounded_through.is_empty());
        }
    }
}

/// A chain of services, each with its coverage; two attempts at every hop.
fn chain(coverages: &[Coverage]) -> (Graph, Vec<ServiceId>) {
    let mut graph = Graph::new();
    let ids: Vec<_> = coverages
        .iter()
        .enumerate()
        .map(|(n, &coverage)| graph.add_service(Service::new(n.to_string()).covered(coverage)))
        .collect();
    for pair in ids.windows(2) {
        graph.add_edge(pair[0], pair[1], Edge::retrying(2));
    }
    (graph, ids)
}

#[test]
fn the_vectors_of_the_protocol() {
    use Coverage::{ContextLost, Enforcing, NonCooperative};
    let mut six = [Enforcing; 6];
    // Protocol §11: the load of the last node.
    let check = |coverages: &[Coverage], ownership, amplification: f64| {
        let (graph, ids) = chain(coverages);
        let storm = graph.storm(ids[0], ownership);
        assert_eq!(storm.amplification, amplification, "{coverages:?} {ownership:?}");
    };
    check(&six[..4], Ownership::Nowhere, 8.0);
    check(&six[..4], Ownership::AsIs, 2.0);
    six[2] = ContextLost;
    check(&six[..4], Ownership::AsIs, 4.0);
    six[3] = ContextLost;
    check(&six, Ownership::AsIs, 8.0);
    check(&[Enforcing, Enforcing, NonCooperative, Enforcing, Enforcing], Ownership::AsIs, 8.0);
    check(&[Enforcing, Enforcing, Enforcing, NonCooperative], Ownership::AsIs, 2.0);
    check(&[Enforcing, Enforcing, NonCooperative, NonCooperative], Ownership::AsIs, 4.0);
}

#[test]
fn a_circle_through_a_service_that_loses_context_has_no_end() {
    let (mut graph, ids) =
        chain(&[Coverage::Enforcing, Coverage::ContextLost, Coverage::Enforcing]);
    graph.add_edge(ids[2], ids[1], Edge::retrying(2));
    let storm = graph.storm(ids[0], Ownership::AsIs);
    assert_eq!(storm.unbounded_through, [ids[1]]);
    assert_eq!(graph.storm(ids[0], Ownership::Everywhere).radius, 1);
}

/// The most requests that reach `culprit` over any way up that passes each service once, by the
/// callers of its last hop.
fn brute_load(graph: &Graph, culprit: ServiceId) -> (f64, Vec<(ServiceId, f64)>) {
    let mut over: Vec<(ServiceId, f64)> = Vec::new();
    let mut all = 1.0_f64;
    for (entrance, _) in graph.services() {
        for first in graph.edges().filter(|(_, callee, _)| *callee == culprit) {
            // Only this edge leads up from the culprit.
            let mut only = Graph::new();
            let ids: Vec<_> =
                graph.services().map(|(_, it)| only.add_service(it.clone())).collect();
            let place =
                |id: ServiceId| graph.services().position(|(other, _)| other == id).expect("known");
            for (caller, callee, edge) in graph.edges() {
                let other = callee == culprit && (caller, edge) != (first.0, first.2);
                if !other {
                    only.add_edge(ids[place(caller)], ids[place(callee)], *edge);
                }
            }
            let coverage = graph.service(culprit).expect("known").coverage;
            let state = match coverage {
                Coverage::NonCooperative => State::Missing,
                Coverage::Enforcing | Coverage::Observing | Coverage::ContextLost => State::Claimed,
            };
            let nothing = Worst { radius: 0, amplification: 1.0, reach: 0 };
            let mut way = Way {
                graph: &only,
                goal: ids[place(entrance)],
                ways: Ways::Simple,
                passed: vec![ids[place(culprit)]],
                worst: nothing,
            };
            way.walk(Some(state), nothing);
            all = all.max(way.worst.amplification);
            over.push((first.0, way.worst.amplification));
        }
    }
    (all, over)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_load_is_the_largest_product_up_from_the_culprit(graph in graphs(5, false)) {
        let loads = graph.loads(Ownership::AsIs);
        for (culprit, _) in graph.services() {
            let (all, over) = brute_load(&graph, culprit);
            prop_assert_eq!(loads.of(culprit), all, "{:?}", culprit);
            for (caller, _) in graph.services() {
                let most = over.iter().filter(|(by, _)| *by == caller).map(|(_, load)| *load);
                let most = most.fold(0.0, f64::max);
                prop_assert_eq!(loads.over(caller, culprit), most, "{:?} {:?}", caller, culprit);
            }
        }
    }

    #[test]
    fn the_largest_load_is_the_largest_amplification(graph in graphs(6, false)) {
        let storms = graph.storms(Ownership::AsIs);
        let loads = graph.loads(Ownership::AsIs);
        let load = graph.services().map(|(id, _)| loads.of(id)).fold(1.0, f64::max);
        let storm = graph.services().map(|(id, _)| storms.below(id).amplification);
        prop_assert_eq!(load, storm.fold(1.0, f64::max));
    }
}
