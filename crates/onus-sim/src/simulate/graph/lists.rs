//! Graphs that are written in the scenario itself.

use super::{Graph, Link, Names};

/// A chain: each service calls the next one.
pub(crate) fn chain<'a>(names: impl IntoIterator<Item = &'a str>) -> Graph {
    let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
    let last = names.len() - 1;
    let steps = (0..names.len()).map(|service| {
        let next = (service < last).then(|| vec![Link { to: service + 1, calls: 1.0 }]);
        next.into_iter().collect()
    });
    let depth_max = u16::try_from(names.len()).unwrap_or(u16::MAX);
    Graph { steps: steps.collect(), names, entries: vec![(0, 1.0)], depth_max }
}

/// The callees of each service, called one after another.
pub(crate) fn lists<'a>(
    lists: impl Iterator<Item = (&'a str, Vec<&'a str>)>,
    depth_max: u16,
) -> Graph {
    let mut names = Names::default();
    let mut steps = Vec::new();
    for (caller, callees) in lists {
        let caller = names.number(caller);
        let links =
            callees.iter().map(|callee| vec![Link { to: names.number(callee), calls: 1.0 }]);
        let links: Vec<_> = links.collect();
        steps.resize(names.names.len(), Vec::new());
        steps[caller] = links;
    }
    Graph { names: names.names, steps, entries: Vec::new(), depth_max }
}
