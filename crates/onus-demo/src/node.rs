//! The services of the demo by name.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

/// A service of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "seven letters")]
pub enum Node {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
}

impl Node {
    /// All services, from the root of the chain to its end.
    pub const ALL: [Self; 7] = [Self::A, Self::B, Self::C, Self::D, Self::E, Self::F, Self::G];

    /// The last service of the chain, which calls nobody.
    pub const LAST: Self = Self::G;

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::E => "E",
            Self::F => "F",
            Self::G => "G",
        }
    }

    /// Hops from the root of the chain.
    #[must_use]
    pub const fn depth(self) -> usize {
        self as usize
    }

    /// The service that it calls.
    #[must_use]
    pub fn callee(self) -> Option<Self> {
        Self::ALL.get(self.depth() + 1).copied()
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Node {
    type Err = UnknownNode;

    fn from_str(text: &str) -> Result<Self, UnknownNode> {
        let known = Self::ALL.into_iter().find(|node| node.as_str().eq_ignore_ascii_case(text));
        known.ok_or(UnknownNode)
    }
}

/// A name that no service of the demo has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no service of the chain has this name; allowed is A, B, C, D, E, F or G")]
pub struct UnknownNode;

/// A value for each service of the demo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerNode<T>(pub [T; 7]);

impl<T> PerNode<T> {
    /// The values with their services, from A to G.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &T)> {
        Node::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<Node> for PerNode<T> {
    type Output = T;

    fn index(&self, node: Node) -> &T {
        &self.0[node.depth()]
    }
}

impl<T> IndexMut<Node> for PerNode<T> {
    fn index_mut(&mut self, node: Node) -> &mut T {
        &mut self.0[node.depth()]
    }
}
