//! What tools read of edges.

use onus_api::{EdgeFigures, EdgePage, Evidence, SCHEMA_VERSION};

use crate::book::{Book, EdgeRow};
use crate::clock::Millis;

/// Which edges are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) caller: Option<String>,
    pub(crate) callee: Option<String>,
    /// The number of edges to leave out.
    pub(crate) after: usize,
    pub(crate) limit: usize,
}

/// The edges asked for, in the order of their names.
pub(crate) fn page(book: &Book, asked: &Asked, now: Millis) -> EdgePage {
    let wants =
        |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let names = &book.names;
    let mut rows: Vec<&EdgeRow> = book
        .edges()
        .filter(|row| {
            wants(&asked.caller, names.name(row.key.caller))
                && wants(&asked.callee, names.name(row.key.callee))
        })
        .collect();
    rows.sort_by_cached_key(|row| {
        let key = row.key;
        [key.caller, key.callee, key.caller_procedure, key.procedure]
            .map(|it| names.name(it).clone())
    });
    let more = rows.len() > asked.after.saturating_add(asked.limit);
    let shown = rows.into_iter().skip(asked.after).take(asked.limit);
    EdgePage {
        schema_version: SCHEMA_VERSION,
        edges: shown.map(|row| figures(book, row, now)).collect(),
        next: more.then(|| (asked.after + asked.limit).to_string()),
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
