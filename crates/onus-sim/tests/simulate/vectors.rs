//! The tree vectors of `docs/conformance/`, written as scenarios and played by the simulator.

use std::fmt::Write;

use onus_conformance::step::ModeName;
use onus_conformance::tree::{Node, RetriesBy, TreeAnswer, TreeEdge, What, When};
use onus_conformance::{
    Counts, Host, Observation, StepVector, TreeVector, Unsupported, Vectors, run_all,
};
use onus_core::EdgeClass;

use super::play;

struct Simulator;

impl Host for Simulator {
    fn name(&self) -> &str {
        "simulator"
    }

    fn run_steps(&mut self, _vector: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        Err("plays whole trees".into())
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        let experiment = play(&scenario(vector));
        let outcome = &experiment.outcomes[0];
        let handled = |load: &onus_sim::simulate::ServiceLoad| {
            (load.name.clone(), load.handled.mean.round() as u64)
        };
        let answer = outcome.last_answer.map(|read| read.map_or(TreeAnswer::Ok, TreeAnswer::Error));
        Ok(Counts { requests: outcome.services.iter().map(handled).collect(), answer })
    }
}

/// The vector as a scenario: one request from outside after another.
fn scenario(vector: &TreeVector) -> String {
    let policy = if vector.ownership { "ownership-mark" } else { "everywhere" };
    let mut text = format!(
        "arrivals: {{requests: {}, rate: 1000}}\nattempts: {}\nbackoff: none\npolicies: [{policy}]\n",
        vector.runs, vector.attempts
    );
    text.push_str("topology:\n  calls:\n    services:\n");
    for (caller, callees) in vector.calls() {
        let _ = writeln!(text, "      {caller}: [{}]", callees.join(", "));
    }
    text.push_str("services:\n");
    for name in vector.calls().keys() {
        let parallel = vector.parallel.contains(*name);
        let _ = writeln!(text, "  {name}: {{{}}}", service(&vector.node(name), parallel));
    }
    text.push_str("edges:\n");
    for (caller, callees) in vector.calls() {
        for callee in callees {
            let _ = writeln!(text, "  - {{{}}}", edge(&vector.edge(caller, callee)));
        }
    }
    text.push_str("faults:\n");
    for fault in &vector.faults {
        let (what, at_once) = match fault.what {
            What::Fails => ("fails", false),
            What::FailsAtOnce => ("fails", true),
            What::NeverAnswers => ("loses-answers", false),
            What::ExcludedError => ("answers-excluded", false),
        };
        let when = match &fault.when {
            When::Always => String::new(),
            When::First(count) => format!(", first: {count}"),
            When::Requests(numbers) => format!(", numbers: {numbers:?}"),
        };
        let node = &fault.node;
        let _ = writeln!(text, "  - {what}: {{service: {node}, at-once: {at_once}{when}}}");
    }
    text
}

fn service(node: &Node, parallel: bool) -> String {
    let mode = match node.mode {
        ModeName::Off => "off",
        ModeName::Observe => "observe",
        ModeName::Enforce => "enforce",
    };
    let retries = match node.retries {
        RetriesBy::Onus => "policy",
        RetriesBy::BlindLayer => "blind-layer",
        RetriesBy::ObedientLayer => "obedient-layer",
    };
    format!(
        "parallel: {parallel}, onus: {}, mode: '{mode}', context-lost: {}, silent-claims: {}, \
         shield: {}, retries: {retries}, tries: {}, drops: {}",
        node.onus, node.context_lost, node.silent_claims, node.shield, node.tries, node.drops
    )
}

fn edge(edge: &TreeEdge) -> String {
    let held = match edge.held {
        Some(EdgeClass::FailClose) => "fail-close",
        Some(EdgeClass::FailOpen) => "fail-open",
        Some(EdgeClass::Unknown) | None => "unknown",
    };
    let mut text = format!(
        "from: {}, to: {}, fail-open: {}, held: {held}, replayable: {}",
        edge.from, edge.to, edge.fail_open, edge.replayable
    );
    let settings = [("attempts", edge.attempts), ("budget-percent", edge.budget_percent)];
    for (name, value) in settings {
        if let Some(value) = value {
            let _ = write!(text, ", {name}: {value}");
        }
    }
    text
}

#[test]
fn simulator_passes_every_tree_vector() {
    let vectors = Vectors { steps: Vec::new(), ..Vectors::shipped() };
    run_all(&mut Simulator, &vectors).assert_all_seen();
}
