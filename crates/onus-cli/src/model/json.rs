//! The result for tools.

use onus_sim::model::{Check, Counterexample, Findings};
use serde::Serialize;

#[derive(Serialize)]
struct Document {
    schema_version: u32,
    nodes: usize,
    configurations: u64,
    traces: u64,
    properties: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    violations: u64,
    /// The id of the smallest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    counterexample: Option<String>,
}

/// One JSON document, with a line break at its end.
pub(crate) fn render(check: &Check, total: &Findings) -> serde_json::Result<String> {
    let properties = check.properties.iter().zip(&total.properties);
    let entry = properties.map(|(property, found)| Entry {
        name: property.name,
        violations: found.violations,
        counterexample: found.smallest.as_ref().map(Counterexample::id),
    });
    let document = Document {
        schema_version: 1,
        nodes: check.nodes,
        configurations: total.configurations,
        traces: total.traces,
        properties: entry.collect(),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
