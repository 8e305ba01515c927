//! Tree vectors: who calls whom, what fails, and how many requests each service must handle.

mod answer;
mod check;

use std::collections::{BTreeMap, BTreeSet};

use onus_core::EdgeClass;
use serde::Deserialize;

use crate::spelling;
use crate::step::ModeName;

pub use answer::TreeAnswer;
pub(crate) use check::check;

/// A topology with faults, and the requests that each service must handle.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TreeVector {
    /// What the vector shows; unique among all vectors.
    pub name: String,
    /// The sentences of the protocol that the vector breaks with.
    pub cites: Vec<String>,
    /// Why the vector is there, where the name does not say it.
    #[serde(default)]
    pub about: Option<String>,
    /// Whether ownership is on; if not, every service with Onus runs in mode off.
    #[serde(default = "yes")]
    pub ownership: bool,
    /// The attempts of every edge that does not say otherwise; fewer than two are no policy.
    #[serde(default = "two")]
    pub attempts: u32,
    /// How often the client outside calls the root, one call after another. It never retries.
    #[serde(default = "one")]
    pub runs: u32,
    /// Who calls whom.
    pub topology: Topology,
    /// Nodes that call all their callees at once and wait for every one; the others call one
    /// after another, and stop at the first failure that they cannot survive.
    #[serde(default)]
    pub parallel: BTreeSet<String>,
    /// Nodes that are not the ordinary one.
    #[serde(default)]
    pub nodes: BTreeMap<String, Node>,
    /// Edges that are not the ordinary one.
    #[serde(default)]
    pub edges: Vec<TreeEdge>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Must be seen: the requests that each node handled, retries included.
    pub counts: BTreeMap<String, u64>,
    /// Must be seen: what the client outside reads in the last run.
    #[serde(default, deserialize_with = "spelling::maybe")]
    pub answer: Option<TreeAnswer>,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

/// Who calls whom.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Each node calls the next one.
    Chain(Vec<String>),
    /// The callees of each node, in the order of its calls.
    Calls(BTreeMap<String, Vec<String>>),
}

/// A node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Node {
    /// Whether the service has Onus. If not, it sends no claim and reads none.
    pub onus: bool,
    /// Who makes the retries of its edges.
    pub retries: RetriesBy,
    /// How far ownership reaches.
    pub mode: ModeName,
    /// Whether its outbound calls cannot be tied to the request being served.
    pub context_lost: bool,
    /// The setting `silent-claims`.
    pub silent_claims: bool,
    /// Whether a shield is up.
    pub shield: bool,
    /// How often the handler makes each call, in a loop of its own, until it succeeds.
    pub tries: u32,
    /// Whether the handler gives a call up that gets no answer, by a timer of its own, before
    /// anything else notices.
    pub drops: bool,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            onus: true,
            retries: RetriesBy::Onus,
            mode: ModeName::Enforce,
            context_lost: false,
            silent_claims: false,
            shield: false,
            tries: 1,
            drops: false,
        }
    }
}

/// Who makes the retries of a node's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetriesBy {
    /// Onus; nobody on a node without it.
    Onus,
    /// A layer below the service that retries every error.
    BlindLayer,
    /// A layer below the service that retries every error without a veto.
    ObedientLayer,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TreeEdge {
    /// The caller.
    pub from: String,
    /// The callee.
    pub to: String,
    /// The attempts; those of the vector unless given.
    #[serde(default)]
    pub attempts: Option<u32>,
    /// Whether the caller survives the callee's failure.
    #[serde(default)]
    pub fail_open: bool,
    /// The class that the caller holds of the edge; the true one unless given.
    #[serde(default, deserialize_with = "spelling::maybe")]
    pub held: Option<EdgeClass>,
    /// Retries per hundred calls, without a floor; no limit unless given, none allowed at zero.
    #[serde(default)]
    pub budget_percent: Option<u32>,
    /// Whether requests can be sent again.
    #[serde(default = "yes")]
    pub replayable: bool,
}

/// What goes wrong at a node.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fault {
    /// The node.
    pub node: String,
    /// In which of its requests.
    pub when: When,
    /// What happens.
    pub what: What,
}

/// In which requests that a node handles, retries included, a fault happens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// In all.
    Always,
    /// In the first so many.
    First(u64),
    /// In those with these numbers, counted from 1.
    Requests(Vec<u64>),
}

impl When {
    /// Whether the fault happens in the node's request of this number.
    #[must_use]
    pub fn includes(&self, number: u64) -> bool {
        match self {
            Self::Always => true,
            Self::First(count) => number <= *count,
            Self::Requests(numbers) => numbers.contains(&number),
        }
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The node fails by itself, once its callees have answered.
    Fails,
    /// The node fails by itself before it calls anybody.
    FailsAtOnce,
    /// The node does its work, and its caller never gets an answer.
    NeverAnswers,
    /// If the node answers with an error, it is one that no retry policy covers.
    ExcludedError,
}

impl TreeVector {
    /// The callees of each node, in the order of its calls.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<&str, Vec<&str>> {
        match &self.topology {
            Topology::Chain(nodes) => {
                let callees = nodes.iter().skip(1).map(|callee| vec![callee.as_str()]);
                nodes.iter().map(String::as_str).zip(callees.chain([Vec::new()])).collect()
            }
            Topology::Calls(calls) => {
                let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
                for (caller, callees) in calls {
                    all.insert(caller, callees.iter().map(String::as_str).collect());
                }
                for callee in calls.values().flatten() {
                    all.entry(callee).or_default();
                }
                all
            }
        }
    }

    /// The node that the client outside calls: the one that no other node calls.
    #[must_use]
    pub fn root(&self) -> Option<&str> {
        let calls = self.calls();
        let mut roots = calls.keys().filter(|node| !calls.values().flatten().any(|to| to == *node));
        roots.next().copied().filter(|_| roots.next().is_none())
    }

    /// How a node is set up.
    #[must_use]
    pub fn node(&self, name: &str) -> Node {
        let mut node = self.nodes.get(name).cloned().unwrap_or_default();
        if !self.ownership {
            node.mode = ModeName::Off;
        }
        node
    }

    /// How an edge is set up, with the class that its caller holds.
    #[must_use]
    pub fn edge(&self, from: &str, to: &str) -> TreeEdge {
        let given = self.edges.iter().find(|edge| edge.from == from && edge.to == to);
        let mut edge = given.cloned().unwrap_or_else(|| TreeEdge {
            from: from.to_owned(),
            to: to.to_owned(),
            attempts: None,
            fail_open: false,
            held: None,
            budget_percent: None,
            replayable: true,
        });
        let class = if edge.fail_open { EdgeClass::FailOpen } else { EdgeClass::FailClose };
        edge.held.get_or_insert(class);
        edge.attempts.get_or_insert(self.attempts);
        edge
    }

    /// Whether this fault happens in the node's request of this number.
    #[must_use]
    pub fn happens(&self, what: What, node: &str, number: u64) -> bool {
        let of_node = self.faults.iter().filter(|fault| fault.node == node && fault.what == what);
        of_node.into_iter().any(|fault| fault.when.includes(number))
    }
}
