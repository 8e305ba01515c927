//! Who calls whom: every ordered call tree of a size, chains and diamonds.

/// How a service makes its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fan {
    /// One after another, until one fails that it cannot do without.
    #[default]
    Sequence,
    /// All at once; it waits for every one.
    Parallel,
    /// One after another, until one succeeds: the others are fallbacks.
    Fallback,
}

/// Who calls whom. Node 0 is the root, and nodes are numbered so that callers come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topology {
    edges: Vec<Ends>,
    calls: Vec<Vec<usize>>,
    fans: Vec<Fan>,
    depths: Vec<u32>,
    names: Vec<String>,
}

/// The two ends of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The caller.
    pub from: usize,
    /// The callee.
    pub to: usize,
}

impl Topology {
    /// `nodes` nodes that call each other along these edges, in the order of the edges; every
    /// edge leads from a smaller number to a larger one.
    #[must_use]
    pub fn new(nodes: usize, edges: Vec<Ends>) -> Self {
        let mut calls = vec![Vec::new(); nodes];
        let mut depths = vec![0; nodes];
        for (edge, ends) in edges.iter().enumerate() {
            calls[ends.from].push(edge);
        }
        for from in 0..nodes {
            for &edge in &calls[from] {
                let to = edges[edge].to;
                depths[to] = depths[to].max(depths[from] + 1);
            }
        }
        let names = (0..nodes).map(letter).collect();
        Self { edges, calls, fans: vec![Fan::Sequence; nodes], depths, names }
    }

    /// A node calls the next one.
    #[must_use]
    pub fn chain(nodes: usize) -> Self {
        Self::of_parents(&(0..nodes.saturating_sub(1)).collect::<Vec<_>>())
    }

    /// Every ordered tree of `nodes` nodes, with each choice of [`Fan::Sequence`] and
    /// [`Fan::Parallel`] where a node has several callees.
    #[must_use]
    pub fn trees(nodes: usize) -> Vec<Self> {
        let mut shapes = vec![Vec::new()];
        for node in 1..nodes {
            shapes = shapes.iter().flat_map(|parents| grown(parents, node)).collect();
        }
        shapes.iter().map(|parents| Self::of_parents(parents)).flat_map(Self::fanned).collect()
    }

    /// A root over a node with `paths` callees which all call one more node, in sequence and in
    /// parallel.
    #[must_use]
    pub fn diamonds(paths: usize) -> Vec<Self> {
        let last = paths + 2;
        let mut edges = vec![Ends { from: 0, to: 1 }];
        edges.extend((2..last).map(|to| Ends { from: 1, to }));
        edges.extend((2..last).map(|from| Ends { from, to: last }));
        Self::new(last + 1, edges).fanned()
    }

    /// The caller of node `n + 1` is `parents[n]`.
    fn of_parents(parents: &[usize]) -> Self {
        let edges = parents.iter().zip(1..).map(|(&from, to)| Ends { from, to });
        Self::new(parents.len() + 1, edges.collect())
    }

    /// The same calls with every choice of sequence and parallel.
    fn fanned(self) -> Vec<Self> {
        let wide: Vec<_> = (0..self.nodes()).filter(|&node| self.calls[node].len() > 1).collect();
        let choice = |mask: usize| {
            let mut topology = self.clone();
            for (bit, &node) in wide.iter().enumerate() {
                if mask & (1 << bit) != 0 {
                    topology.fans[node] = Fan::Parallel;
                }
            }
            topology
        };
        (0..1 << wide.len()).map(choice).collect()
    }

    /// The same calls, with `fan` at `node`.
    #[must_use]
    pub fn with_fan(mut self, node: usize, fan: Fan) -> Self {
        self.fans[node] = fan;
        self
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.calls.len()
    }

    /// All edges.
    #[must_use]
    pub fn edges(&self) -> &[Ends] {
        &self.edges
    }

    /// The edges along which a node calls, in the order of its calls.
    #[must_use]
    pub fn calls(&self, node: usize) -> &[usize] {
        &self.calls[node]
    }

    /// How a node makes its calls.
    #[must_use]
    pub fn fan(&self, node: usize) -> Fan {
        self.fans[node]
    }

    /// The hops from the root, along the longest way.
    #[must_use]
    pub fn depth(&self, node: usize) -> u32 {
        self.depths[node]
    }

    /// Whether every node but the root has one caller.
    #[must_use]
    pub fn is_tree(&self) -> bool {
        (1..self.nodes()).all(|node| self.edges.iter().filter(|ends| ends.to == node).count() == 1)
    }

    /// The edges from the root to a node of a tree, the one next to the root first.
    #[must_use]
    pub fn path(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = node;
        while let Some(edge) = self.edges.iter().position(|ends| ends.to == at) {
            path.push(edge);
            at = self.edges[edge].from;
        }
        path.reverse();
        path
    }

    /// The same calls between nodes of these names.
    #[must_use]
    pub fn with_names(self, names: Vec<String>) -> Self {
        Self { names, ..self }
    }

    /// The name of a node: A, B, C … unless it was given another one.
    #[must_use]
    pub fn name(&self, node: usize) -> &str {
        &self.names[node]
    }
}

/// A, B, C … and numbers after Z.
fn letter(node: usize) -> String {
    let letter = u8::try_from(node).ok().and_then(|node| b'A'.checked_add(node));
    let letter = letter.filter(u8::is_ascii_uppercase);
    letter.map_or_else(|| format!("N{node}"), |letter| char::from(letter).to_string())
}

/// The trees that come of hanging `node` below the last leaf or one of its ancestors.
fn grown(parents: &[usize], node: usize) -> Vec<Vec<usize>> {
    let mut places = vec![node - 1];
    while let Some(&place) = places.last()
        && place > 0
    {
        places.push(parents[place - 1]);
    }
    let hung = places.into_iter().map(|place| {
        let mut parents = parents.to_vec();
        parents.push(place);
        parents
    });
    hung.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_trees_as_there_are() {
        // Catalan numbers; with a choice at every node that has several callees.
        for (nodes, ordered, fanned) in
            [(1, 1, 1), (2, 1, 1), (3, 2, 3), (4, 5, 9), (5, 14, 31), (6, 42, 113)]
        {
            let trees = Topology::trees(nodes);
            let in_sequence = |tree: &&Topology| (0..nodes).all(|n| tree.fan(n) == Fan::Sequence);
            assert_eq!(trees.len(), fanned, "{nodes}");
            assert_eq!(trees.iter().filter(in_sequence).count(), ordered, "{nodes}");
            assert!(trees.iter().all(Topology::is_tree));
            let distinct: std::collections::HashSet<_> = trees.iter().collect();
            assert_eq!(distinct.len(), fanned, "{nodes}");
        }
    }

    #[test]
    fn depths_and_paths() {
        let chain = Topology::chain(4);
        assert_eq!((chain.depth(3), chain.path(3)), (3, vec![0, 1, 2]));
        let diamonds = Topology::diamonds(2);
        assert_eq!(diamonds.len(), 2);
        assert_eq!((diamonds[0].nodes(), diamonds[0].depth(4)), (5, 3));
        assert!(!diamonds[0].is_tree());
    }
}
