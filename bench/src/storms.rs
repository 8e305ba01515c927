//! A large service graph: layers of procedures that call those below them, some of which lose
//! context or have no Onus.

use onus_graph::{Coverage, Edge, Graph, Service};

/// A graph of so many procedures and edges in 25 layers, always the same.
#[must_use]
pub fn layered(procedures: usize, edges: usize) -> Graph {
    let mut random = fastrand::Rng::with_seed(1);
    let mut graph = Graph::new();
    let ids: Vec<_> = (0..procedures)
        .map(|number| {
            let coverage = match random.u32(..200) {
                0 => Coverage::ContextLost,
                1 => Coverage::NonCooperative,
                2 => Coverage::Observing,
                _ => Coverage::Enforcing,
            };
            graph.add_service(Service::new(number.to_string()).covered(coverage))
        })
        .collect();
    let layer = procedures.div_ceil(LAYERS);
    for _ in 0..edges {
        let caller = random.usize(..procedures - layer);
        let below = (caller / layer + 1) * layer;
        let callee = random.usize(below..procedures.min(below + layer));
        let attempts = random.u32(1..=3);
        let edge = Edge::retrying(attempts);
        let edge = if random.u32(..10) == 0 { edge.fail_open() } else { edge };
        graph.add_edge(ids[caller], ids[callee], edge);
    }
    graph
}

const LAYERS: usize = 25;
