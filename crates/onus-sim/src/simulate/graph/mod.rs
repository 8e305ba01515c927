//! Who calls whom: a graph of services, from whatever source.

mod generated;
mod isotope;
mod lists;
mod reach;
mod weighted;

use std::collections::BTreeMap;

pub(crate) use generated::generated;
pub(crate) use isotope::isotope;
pub(crate) use lists::{chain, lists};
pub(crate) use weighted::{csv, jaeger};

/// A graph of services.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Graph {
    pub(crate) names: Vec<String>,
    /// For each service its calls, in their order; those of one step are made at once.
    pub(crate) steps: Vec<Vec<Step>>,
    /// The services that requests from outside reach, with their shares of the traffic.
    pub(crate) entries: Vec<(usize, f64)>,
    /// A request at this depth makes no calls, so that cycles end.
    pub(crate) depth_max: u16,
}

/// Calls that are made at once.
pub(crate) type Step = Vec<Link>;

/// A service's calls of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) to: usize,
    /// Calls per request of the caller: the whole part always, one more by chance.
    pub(crate) calls: f64,
}

impl Graph {
    /// The place of a service.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The services that each service calls.
    pub(crate) fn links(&self, service: usize) -> impl Iterator<Item = &Link> {
        self.steps[service].iter().flatten()
    }
}

/// Names as numbers, while a graph is read.
#[derive(Default)]
struct Names<'a> {
    numbers: BTreeMap<&'a str, usize>,
    names: Vec<String>,
}

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a str) -> usize {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }
}
