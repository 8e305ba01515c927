//! A set of configurations that is numbered, so that a number finds one again.

use super::config::{Config, Faults, Role, Setting, Switches};
use super::topology::Topology;

/// Every combination of a topology, a setting per edge, the roles of the nodes, and switches.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) topologies: Vec<Topology>,
    pub(crate) settings: Vec<Setting>,
    /// One role per node, each.
    pub(crate) roles: Vec<Vec<Role>>,
    pub(crate) switches: Vec<Switches>,
    pub(crate) faults: Faults,
    pub(crate) engine: Engine,
}

/// How configurations are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Every trace is run.
    Traces,
    /// The dearest trace for each node is computed; only bounds on requests can be judged by it.
    Dearest,
}

impl Space {
    /// How many configurations there are.
    pub(crate) fn count(&self) -> u64 {
        self.topologies.iter().map(|topology| self.count_of(topology)).sum()
    }

    fn count_of(&self, topology: &Topology) -> u64 {
        let settings = (self.settings.len() as u64).pow(topology.edges().len() as u32);
        settings * (self.roles.len() * self.switches.len()) as u64
    }

    /// The configuration of this number.
    pub(crate) fn config(&self, index: u64) -> Option<Config> {
        let mut rest = index;
        let mut topologies = self.topologies.iter();
        let topology = loop {
            let topology = topologies.next()?;
            let count = self.count_of(topology);
            if rest < count {
                break topology;
            }
            rest -= count;
        };
        let mut digit = |base: usize| {
            let digit = rest % base as u64;
            rest /= base as u64;
            digit as usize
        };
        let switches = self.switches[digit(self.switches.len())];
        let roles = self.roles[digit(self.roles.len())].clone();
        let edges = topology.edges().iter().map(|_| self.settings[digit(self.settings.len())]);
        let edges = edges.collect();
        Some(Config { topology: topology.clone(), edges, roles, switches, faults: self.faults })
    }
}

/// All choices of one of `choices` for each of `nodes` nodes, of which at most `most` are not the
/// first.
pub(crate) fn roles(nodes: usize, choices: &[Role], most: usize) -> Vec<Vec<Role>> {
    let mut all = vec![Vec::new()];
    for _ in 0..nodes {
        let longer = |roles: &Vec<Role>| {
            let others = roles.iter().filter(|&&role| role != choices[0]).count();
            let allowed = if others < most { choices } else { &choices[..1] };
            let longer = allowed.iter().map(|&role| [roles.as_slice(), &[role]].concat());
            longer.collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::slice::SLICES;

    #[test]
    fn every_number_is_another_configuration() {
        for slice in SLICES {
            for nodes in slice.sizes(3).take(2) {
                let space = slice.space(nodes);
                let configs: Vec<_> = (0..space.count()).map(|i| space.config(i)).collect();
                assert!(configs.iter().all(Option::is_some), "{}", slice.name);
                let same = |(i, config)| configs[..i].contains(config);
                assert!(!configs.iter().enumerate().any(same), "{}", slice.name);
                assert!(space.config(space.count()).is_none(), "{}", slice.name);
            }
        }
    }

    #[test]
    fn roles_of_which_few_are_not_ordinary() {
        // 1 + 5 * 3 + 10 * 9.
        let choices = [Role::Correlated, Role::ContextLost, Role::NonCooperative, Role::Observing];
        assert_eq!(roles(5, &choices, 2).len(), 106);
        assert_eq!(roles(2, &choices[..2], 2).len(), 4);
    }
}
