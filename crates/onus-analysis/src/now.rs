//! How the mesh is at this moment.

use std::collections::BTreeMap;

use onus_api::{EdgeNow, ProcedureCounts, SCHEMA_VERSION, ServiceNow, Snapshot};

use crate::book::{Book, InstanceRow};
use crate::clock::Millis;
use crate::gaps;

/// A process that was silent for longer has ended, or is cut off.
const SILENT_MILLIS: u64 = 60_000;

/// How many processes this row tells of that were heard of lately.
pub(crate) fn processes(row: &InstanceRow, now: Millis) -> u64 {
    let alive = now.saturating_sub(row.seen) < SILENT_MILLIS;
    if alive { row.facts.processes.unwrap_or(1) } else { 0 }
}

/// The counts of the last while, by service and pair of services.
pub(crate) fn snapshot(book: &Book, now: Millis) -> Snapshot {
    let mut services: BTreeMap<&str, ServiceNow> = BTreeMap::new();
    for (_, row) in book.instances() {
        let name = book.names.name(row.service);
        services.entry(name).or_default().add(ServiceNow {
            instances: processes(row, now),
            seen: row.seen.0,
            facts: row.facts.clone(),
            ..ServiceNow::default()
        });
    }
    for row in book.procedures() {
        let counts: ProcedureCounts = row.counts.since(row.at_tick).plus(row.last);
        let service = services.entry(book.names.name(row.key.service)).or_default();
        service.add(ServiceNow {
            counts,
            own_since: row.failing.map(|since| since.0),
            ..ServiceNow::default()
        });
    }
    let mut edges: BTreeMap<(&str, &str), EdgeNow> = BTreeMap::new();
    for row in book.edges() {
        let pair = (&**book.names.name(row.key.caller), &**book.names.name(row.key.callee));
        let (counts, _) = book.recent(row, now);
        edges.entry(pair).or_default().add(&EdgeNow {
            counts,
            policy: row.policy,
            failing_since: row.failing.map(|since| since.0),
            ..EdgeNow::default()
        });
    }
    Snapshot {
        schema_version: SCHEMA_VERSION,
        at: now.0,
        seconds: book.recent_seconds(now),
        services: services
            .into_iter()
            .map(|(name, service)| ServiceNow { service: name.to_owned(), ..service })
            .collect(),
        edges: edges
            .into_iter()
            .map(|((caller, callee), edge)| EdgeNow {
                caller: caller.to_owned(),
                callee: callee.to_owned(),
                ..edge
            })
            .collect(),
        missing: gaps::missing(book),
        elsewhere: Vec::new(),
    }
}
