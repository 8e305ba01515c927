//! The class of an edge, as each failed call asks for it, among as many edges as an agent has at
//! most by default.

use std::sync::Arc;
use std::time::Duration;

use onus_agent::{Agent, AgentConfig, Edge, EdgeClass, EdgeName, GivenClass, Procedure, Timestamp};

/// Edges that are resolved, whose classes the analysis has handed back.
pub struct Classes {
    edges: Vec<Arc<Edge>>,
    next: usize,
}

const EDGES: usize = 2_000;

impl Classes {
    /// # Panics
    ///
    /// Never: the configuration is the default.
    #[must_use]
    pub fn new() -> Self {
        let agent = Agent::new(&AgentConfig::new("checkout"), 7, Timestamp::ZERO)
            .expect("the default configuration can be meant");
        let name = |number: usize| format!("callee-{number}");
        let given = |number| {
            let class = [EdgeClass::FailClose, EdgeClass::FailOpen][number % 2];
            let callee = name(number).as_str().into();
            let edge = EdgeName { caller: String::new(), callee, procedure: String::new() };
            let held = Duration::from_secs(60);
            (edge, GivenClass { class, by_operator: false, k: 10.0, n: 20.0, held })
        };
        let edges = (0..EDGES)
            .map(|number| {
                let callee = agent.symbols().intern(&name(number));
                agent.edge(None, callee, Procedure::NONE, || Timestamp::ZERO)
            })
            .collect();
        agent.follow_analysis((0..EDGES).map(given), Timestamp::ZERO);
        Self { edges, next: 0 }
    }

    /// The class of the next edge, which is no neighbour of the one before.
    pub fn class(&mut self) -> EdgeClass {
        self.next = (self.next + 911) % EDGES;
        self.edges[self.next].class()
    }
}

impl Default for Classes {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_up_is_what_was_handed_back() {
        let mut classes = Classes::new();
        let found: Vec<_> = (0..EDGES).map(|_| classes.class()).collect();
        let count = |class| found.iter().filter(|it| **it == class).count();
        assert_eq!([count(EdgeClass::FailClose), count(EdgeClass::FailOpen)], [1_000, 1_000]);
    }
}
