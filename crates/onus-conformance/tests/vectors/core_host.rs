//! The core passes every vector, and what the protocol says of all trees holds in each of them.

use onus_conformance::step::ModeName;
use onus_conformance::tree::{Node, When};
use onus_conformance::{CoreHost, Host, TreeVector, Vectors, run_all};

#[test]
fn core_passes_every_vector() {
    run_all(&mut CoreHost, &Vectors::shipped()).assert_all_seen();
}

/// Every service has the protocol, ties its calls and enforces, and nothing depends on the number
/// of a request.
fn has_full_coverage(vector: &TreeVector) -> bool {
    let plain = |node: &Node| node.onus && !node.context_lost && node.mode == ModeName::Enforce;
    vector.ownership
        && vector.nodes.values().all(plain)
        && vector.faults.iter().all(|fault| fault.when == When::Always)
}

#[test]
fn ownership_never_adds_requests() {
    let trees = Vectors::shipped().trees.into_iter().filter(has_full_coverage);
    let mut checked = 0;
    for vector in trees {
        let without = TreeVector { ownership: false, ..vector.clone() };
        let without = CoreHost.run_tree(&without).expect("the core runs every tree").requests;
        for (node, count) in &vector.counts {
            let baseline = without.get(node).copied().unwrap_or(0);
            assert!(*count <= baseline, "{}: {node} {count} > {baseline}", vector.name);
        }
        checked += 1;
    }
    assert!(checked > 20, "{checked} vectors with full coverage");
}
