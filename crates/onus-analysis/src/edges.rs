//! What tools read of edges.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use onus_api::{EdgeCounts, EdgeFigures, EdgePage, Evidence, SCHEMA_VERSION};

use crate::book::{Book, EdgeRow};
use crate::clock::Millis;
use crate::gaps;
use crate::names::Name;
use crate::now;
use crate::window::WindowKey;

/// Which edges are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) caller: Option<String>,
    pub(crate) callee: Option<String>,
    /// The number of edges to leave out.
    pub(crate) after: usize,
    pub(crate) limit: usize,
}

/// What a window has of edges: the sum of the minutes that are kept, and how many they are.
pub(crate) type Kept = HashMap<u32, (EdgeCounts, u32), RandomState>;

/// The kept minutes of each edge.
pub(crate) fn kept(windows: &[(WindowKey, EdgeCounts)]) -> Kept {
    let mut kept = Kept::default();
    for (key, counts) in windows {
        let (sum, minutes) = kept.entry(key.edge).or_default();
        *sum = sum.plus(*counts);
        *minutes += 1;
    }
    kept
}

/// The edges asked for, in the order of their names; with a window those that have a part in it.
pub(crate) fn page(book: &Book, asked: &Asked, window: Option<&Kept>, now: Millis) -> EdgePage {
    let wants =
        |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let names = &book.names;
    let mut rows: Vec<(u32, &EdgeRow)> = book
        .edges_by_id()
        .filter(|(id, row)| {
            wants(&asked.caller, names.name(row.key.caller))
                && wants(&asked.callee, names.name(row.key.callee))
                && window.is_none_or(|window| window.contains_key(id))
        })
        .collect();
    rows.sort_by_cached_key(|(_, row)| {
        let key = row.key;
        [key.caller, key.callee, key.caller_procedure, key.procedure]
            .map(|it| names.name(it).clone())
    });
    let more = rows.len() > asked.after.saturating_add(asked.limit);
    let shown = rows.into_iter().skip(asked.after).take(asked.limit);
    let mut processes: HashMap<Name, u64, RandomState> = HashMap::default();
    for (_, row) in book.instances() {
        *processes.entry(row.service).or_default() += now::processes(row, now);
    }
    let figures = |row: &EdgeRow| EdgeFigures {
        processes: processes.get(&row.key.caller).copied().unwrap_or(0),
        ..figures(book, row, now)
    };
    let figures = shown.map(|(id, row)| match window.and_then(|window| window.get(&id)) {
        None => figures(row),
        Some(&(counts, minutes)) => EdgeFigures {
            recent: counts,
            recent_seconds: f64::from(minutes) * 60.0,
            ..figures(row)
        },
    });
    EdgePage {
        schema_version: SCHEMA_VERSION,
        edges: figures.collect(),
        next: more.then(|| (asked.after + asked.limit).to_string()),
        missing: gaps::missing(book),
        elsewhere: Vec::new(),
    }
}

fn figures(book: &Book, row: &EdgeRow, now: Millis) -> EdgeFigures {
    let names = &book.names;
    let finding = row.finding(book.declared(row, now), now);
    let measured = finding.measured;
    let (recent, recent_seconds) = book.recent(row, now);
    EdgeFigures {
        caller: names.name(row.key.caller).to_string(),
        caller_procedure: names.name(row.key.caller_procedure).to_string(),
        callee: names.name(row.key.callee).to_string(),
        procedure: names.name(row.key.procedure).to_string(),
        counts: row.counts,
        recent,
        recent_seconds,
        policy: row.policy,
        processes: 0,
        class: finding.class.into(),
        by: finding.by.as_str().to_owned(),
        measured: measured.class.as_str().to_owned(),
        evidence: Evidence { n: measured.n, k: measured.k },
        ratio: measured.ratio(),
        interval: measured.interval(),
        held_seconds: measured.held.as_secs(),
        explanation: finding.to_string(),
    }
}
