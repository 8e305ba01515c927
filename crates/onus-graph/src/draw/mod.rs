//! Pictures of a graph: for Graphviz, for Markdown (Mermaid), and as SVG that stands alone.

mod dot;
mod layout;
mod mermaid;
mod svg;

use std::collections::BTreeMap;

use onus_learn::MeasuredClass;

use crate::graph::{Graph, ServiceId};

/// What is drawn: services with lines between them.
#[derive(Clone, Debug)]
pub struct Drawing {
    title: String,
    services: Vec<String>,
    lines: Vec<Line>,
    /// Services and lines that had no room.
    left_out: (usize, usize),
}

/// A line from a caller to a callee.
#[derive(Clone, Debug)]
struct Line {
    caller: usize,
    callee: usize,
    look: Look,
    on_way: bool,
}

/// How the calls of one service to another look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The class of the edge.
    pub class: MeasuredClass,
    /// What is written at it; may be empty.
    pub label: String,
    /// How much it should be seen where not all can be: more is better.
    pub weight: u64,
}

impl Drawing {
    /// A picture of the edges of a graph that are worth most, at most `most` of them, those on the
    /// way `way` before all. The services are those at their ends; services without edges are drawn
    /// while there is room.
    #[must_use]
    pub fn of(
        title: &str,
        graph: &Graph,
        way: &[ServiceId],
        most: usize,
        look: impl Fn(ServiceId, ServiceId) -> Look,
    ) -> Self {
        let on_way =
            |caller, callee| way.windows(2).any(|pair| pair[0] == caller && pair[1] == callee);
        let mut edges: Vec<_> = graph
            .edges()
            .map(|(caller, callee, _)| {
                (caller, callee, look(caller, callee), on_way(caller, callee))
            })
            .collect();
        edges.sort_by_key(|(caller, callee, look, on_way)| {
            (std::cmp::Reverse((*on_way, look.weight)), *caller, *callee)
        });
        edges.dedup_by_key(|(caller, callee, ..)| (*caller, *callee));
        let edges_left_out = edges.len().saturating_sub(most);
        edges.truncate(most);
        edges.sort_by_key(|(caller, callee, ..)| (*caller, *callee));

        let mut drawn: BTreeMap<ServiceId, usize> = BTreeMap::new();
        let ends = edges.iter().flat_map(|(caller, callee, ..)| [*caller, *callee]);
        drawn.extend(ends.map(|service| (service, 0)));
        if edges_left_out == 0 {
            let room = most.saturating_sub(drawn.len());
            let others = graph.services().map(|(id, _)| id).filter(|id| !drawn.contains_key(id));
            let others: Vec<_> = others.take(room).collect();
            drawn.extend(others.into_iter().map(|service| (service, 0)));
        }
        let mut services = Vec::with_capacity(drawn.len());
        for (id, number) in &mut drawn {
            *number = services.len();
            let name = graph.service(*id).map_or("", |it| &it.name);
            // No format of pictures has a place for them.
            services.push(name.replace(char::is_control, "\u{fffd}"));
        }
        let line = |(caller, callee, look, on_way)| Line {
            caller: drawn[&caller],
            callee: drawn[&callee],
            look,
            on_way,
        };
        let lines = edges.into_iter().map(line).collect();
        let left_out = (graph.services().count() - services.len(), edges_left_out);
        Self { title: title.to_owned(), services, lines, left_out }
    }

    /// How many services and edges are not in the picture.
    #[must_use]
    pub fn left_out(&self) -> (usize, usize) {
        self.left_out
    }
}

/// What a class is drawn as, by name and colour. The colours are of middle lightness, which stand
/// out from white and from black.
const fn paint(class: MeasuredClass) -> (&'static str, &'static str) {
    match class {
        MeasuredClass::FailClose => ("fail-close: takes its caller down", "#d9483b"),
        MeasuredClass::FailOpen => ("fail-open: its caller survives", "#3a9d5d"),
        MeasuredClass::Unknown => ("unknown: neither is proven", "#c2921d"),
        MeasuredClass::NoData => ("no data: never seen to fail", "#8a8a8a"),
    }
}

/// The classes in the order of a legend.
const CLASSES: [MeasuredClass; 4] = [
    MeasuredClass::FailClose,
    MeasuredClass::FailOpen,
    MeasuredClass::Unknown,
    MeasuredClass::NoData,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edge, Service};

    /// A → B → C, A → D; E has no edge. The names are such as strangers write.
    pub(super) fn example(most: usize) -> Drawing {
        let mut graph = Graph::new();
        let [a, b, c, d, _] =
            ["A <\"1\">", "B", "C", "D", "E"].map(|name| graph.add_service(Service::new(name)));
        for (caller, callee) in [(a, b), (b, c), (a, d)] {
            graph.add_edge(caller, callee, Edge::retrying(2));
        }
        Drawing::of("Calls & storms", &graph, &[a, b], most, |caller, callee| Look {
            class: match (caller, callee) {
                _ if caller == b => MeasuredClass::FailClose,
                _ if callee == d => MeasuredClass::FailOpen,
                _ => MeasuredClass::Unknown,
            },
            label: if callee == c { "P 0.90 & more".to_owned() } else { String::new() },
            weight: u64::from(callee == c),
        })
    }

    #[test]
    fn what_is_worth_most_is_drawn() {
        for (most, services, lines, left_out) in
            [(9, 5, 3, (0, 0)), (2, 3, 2, (2, 1)), (1, 2, 1, (3, 2)), (0, 0, 0, (5, 3))]
        {
            let drawing = example(most);
            assert_eq!((drawing.services.len(), drawing.lines.len()), (services, lines));
            assert_eq!(drawing.left_out(), left_out, "{most}");
        }
        // The way comes before weight.
        assert!(example(1).lines[0].on_way);
    }
}
