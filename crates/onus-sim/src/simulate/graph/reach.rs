//! Which services requests from outside reach, and at which depth.

use std::collections::VecDeque;

use super::Graph;

impl Graph {
    /// The services that nobody calls.
    pub(crate) fn roots(&self) -> Vec<usize> {
        let mut called = vec![false; self.names.len()];
        for service in 0..self.names.len() {
            for link in self.links(service) {
                called[link.to] |= link.to != service;
            }
        }
        (0..called.len()).filter(|service| !called[*service]).collect()
    }

    /// The depth of each service on its shortest path; `None` where no request comes.
    pub(crate) fn depths(&self) -> Vec<Option<u16>> {
        let mut depths = vec![None; self.names.len()];
        let mut queue: VecDeque<_> = self.entries.iter().map(|(entry, _)| *entry).collect();
        for entry in &queue {
            depths[*entry] = Some(0);
        }
        while let Some(service) = queue.pop_front() {
            for link in self.links(service) {
                if depths[link.to].is_none() {
                    depths[link.to] = depths[service].map(|depth| depth + 1);
                    queue.push_back(link.to);
                }
            }
        }
        depths
    }
}

#[cfg(test)]
mod tests {
    use crate::simulate::graph::lists;

    #[test]
    fn roots_and_depths() {
        let calls = [("a", vec!["b", "c"]), ("b", vec!["c"]), ("d", vec!["e"]), ("e", vec!["d"])];
        let mut graph = lists(calls.into_iter(), 9);
        assert_eq!(graph.roots(), [0]);
        graph.entries = vec![(0, 1.0)];
        let depths = graph.depths();
        let depth = |name| depths[graph.find(name).unwrap()];
        assert_eq!([depth("a"), depth("b"), depth("c")], [Some(0), Some(1), Some(1)]);
        assert_eq!([depth("d"), depth("e")], [None, None]);
    }
}
