//! What one process sees at this moment.

use std::collections::BTreeMap;

use onus_api::{EdgeNow, SCHEMA_VERSION, ServiceNow, Snapshot};

use super::admin::millis;
use super::ledger::{edge_counts, facts, policy_facts, procedure_counts};
use crate::onus::Onus;

/// The counts since the start of the process.
pub(crate) fn of(onus: &Onus) -> Snapshot {
    let agent = onus.agent();
    let now = onus.clock().now();
    let at = millis(onus);
    let mut edges: BTreeMap<String, EdgeNow> = BTreeMap::new();
    for edge in agent.edges() {
        let callee = edge.name(agent.symbols()).callee.to_string();
        edges.entry(callee).or_default().add(&EdgeNow {
            counts: edge_counts(&edge.totals()),
            policy: policy_facts(&edge, now),
            ..EdgeNow::default()
        });
    }
    let mut service = ServiceNow {
        service: agent.service().to_string(),
        instances: 1,
        facts: facts(agent, now),
        seen: at,
        ..ServiceNow::default()
    };
    for (_, totals) in agent.procedure_totals() {
        service.counts = service.counts.plus(procedure_counts(&totals));
    }
    Snapshot {
        schema_version: SCHEMA_VERSION,
        at,
        seconds: now.as_nanos() as f64 / 1e9,
        services: Vec::from([service]),
        edges: edges
            .into_iter()
            .map(|(callee, edge)| EdgeNow { caller: agent.service().to_string(), callee, ..edge })
            .collect(),
        ..Snapshot::default()
    }
}
