//! Whether a tree vector makes sense; what the format alone cannot refuse.

use std::collections::{BTreeMap, BTreeSet};

use super::{Topology, TreeVector, When};

/// What is wrong with the vector, as a fragment that fits after its name.
pub(crate) fn check(vector: &TreeVector) -> Result<(), String> {
    if let Topology::Chain(nodes) = &vector.topology
        && nodes.iter().collect::<BTreeSet<_>>().len() < nodes.len()
    {
        return Err("names a node of the chain twice".to_owned());
    }
    let calls = vector.calls();
    if vector.root().is_none() {
        return Err("needs exactly one node that no other node calls".to_owned());
    }
    if has_cycle(vector) {
        return Err("has a node that calls itself in the end".to_owned());
    }
    let of_edges = vector.edges.iter().flat_map(|edge| [&edge.from, &edge.to]);
    let named = vector.parallel.iter().chain(vector.nodes.keys()).chain(of_edges);
    let named = named.chain(vector.faults.iter().map(|fault| &fault.node));
    for node in named.chain(vector.counts.keys()) {
        if !calls.contains_key(node.as_str()) {
            return Err(format!("names `{node}`, which is not in the topology"));
        }
    }
    for edge in &vector.edges {
        if !calls[edge.from.as_str()].contains(&edge.to.as_str()) {
            return Err(format!(
                "sets up an edge from {} to {}, which does not call it",
                edge.from, edge.to
            ));
        }
    }
    if let Some(node) = calls.keys().find(|node| !vector.counts.contains_key(**node)) {
        return Err(format!("counts no requests of `{node}`"));
    }
    for (name, node) in &vector.nodes {
        if node.tries == 0 {
            return Err(format!("lets `{name}` try each call 0 times"));
        }
    }
    check_order_of_counted_faults(vector)
}

fn has_cycle(vector: &TreeVector) -> bool {
    let mut left = vector.calls();
    let is_leaf = |callees: &[&str], left: &BTreeMap<&str, Vec<&str>>| {
        !callees.iter().any(|callee| left.contains_key(callee))
    };
    loop {
        let leaf = left.iter().find(|(_, callees)| is_leaf(callees, &left)).map(|(node, _)| *node);
        match leaf {
            Some(leaf) => left.remove(leaf),
            None => return !left.is_empty(),
        };
    }
}

/// Requests of a node below a parallel one arrive in any order, so a fault may not count them.
fn check_order_of_counted_faults(vector: &TreeVector) -> Result<(), String> {
    let calls = vector.calls();
    let mut below: Vec<&str> = Vec::new();
    below.extend(vector.parallel.iter().flat_map(|node| &calls[node.as_str()]));
    let mut at = 0;
    while at < below.len() {
        below.extend(&calls[below[at]]);
        at += 1;
    }
    let counted = vector.faults.iter().filter(|fault| fault.when != When::Always);
    for fault in counted {
        if below.contains(&fault.node.as_str()) {
            return Err(format!("counts requests of `{}`, which parallel calls reach", fault.node));
        }
    }
    Ok(())
}
