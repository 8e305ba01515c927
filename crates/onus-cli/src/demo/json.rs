//! The result for tools.

use std::collections::BTreeMap;

use onus_demo::{BadKeys, Demo, PerNode, Run};
use serde::Serialize;

#[derive(Serialize)]
struct Document {
    schema_version: u32,
    requests: u64,
    runs: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    policy: &'static str,
    handled: BTreeMap<&'static str, u64>,
    expected: Option<BTreeMap<&'static str, u64>>,
    client_errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bad_keys: Option<Counts>,
}

#[derive(Serialize)]
struct Counts {
    handled: BTreeMap<&'static str, u64>,
    expected: Option<BTreeMap<&'static str, u64>>,
}

/// One JSON document, with a line break at its end.
pub(crate) fn render(demo: &Demo, runs: &[Run]) -> serde_json::Result<String> {
    let runs = runs.iter().map(|run| Entry {
        policy: run.policy.as_str(),
        handled: per_node(&run.handled),
        expected: run.expected.as_ref().map(per_node),
        client_errors: run.report.client_errors,
        bad_keys: run.bad_keys.as_ref().map(with_bad_keys),
    });
    let document = Document { schema_version: 1, requests: demo.requests, runs: runs.collect() };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn with_bad_keys(counts: &BadKeys) -> Counts {
    Counts { handled: per_node(&counts.handled), expected: counts.expected.as_ref().map(per_node) }
}

fn per_node(counts: &PerNode<u64>) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|(node, &count)| (node.as_str(), count)).collect()
}
