//! Who calls whom, as it is typed.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

/// Who calls whom.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TopologyFile {
    /// Each service calls the next one.
    Chain(Vec<Spanned<String>>),
    /// A chain of so many hops: `n0`, `n1` and so on, and `last`.
    Hops(Spanned<u32>),
    /// The callees of each service, in the order of its calls.
    Calls(CallsFile),
    /// A file of `caller,callee,weight`.
    Csv(GraphFile),
    /// Jaeger's `/api/dependencies`.
    Jaeger(GraphFile),
    /// A service graph of Isotope.
    Isotope(GraphFile),
    /// A graph of a published shape.
    Generated(GeneratedFile),
}

/// The callees of each service.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct CallsFile {
    pub(crate) services: BTreeMap<String, Vec<Spanned<String>>>,
    /// The services that requests from outside reach; those that nobody calls unless given.
    #[serde(default)]
    pub(crate) entries: Vec<Spanned<String>>,
    #[serde(default = "depth")]
    pub(crate) depth: u16,
}

/// A graph in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct GraphFile {
    /// Relative to the scenario.
    pub(crate) path: Spanned<String>,
    #[serde(default)]
    pub(crate) entries: Vec<Spanned<String>>,
    /// Calls end at this depth, so that cycles end.
    #[serde(default = "depth")]
    pub(crate) depth: u16,
}

/// Deeper than the longest path that anybody has published.
fn depth() -> u16 {
    25
}

/// A graph of a published shape.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct GeneratedFile {
    pub(crate) shape: Shape,
    pub(crate) services: Spanned<u32>,
    /// Which of the graphs of this shape.
    #[serde(default)]
    pub(crate) seed: u64,
}

/// A published shape of service graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shape {
    /// Wide and shallow.
    Meta,
    /// Entries, middle and leaves.
    Alibaba,
    /// Deep.
    Uber,
}
