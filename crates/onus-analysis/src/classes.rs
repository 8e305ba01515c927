//! What the agents of a service are told.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use onus_api::{ClassPage, EdgeClassEntry, Evidence, SCHEMA_VERSION, SwitchOrder, Word};
use onus_core::EdgeClass;

use crate::book::Book;
use crate::clock::Millis;

/// The page for a service, with the classes that are known.
pub(crate) fn page(book: &Book, service: &str, now: Millis) -> ClassPage {
    let names = &book.names;
    let edges = book.service(service).into_iter().flat_map(|row| &row.edges).filter_map(|&edge| {
        let row = book.edge(edge)?;
        let word = book.said.overrides.word(row.key, now);
        let learned = row.told.class.edge_class();
        let class = word.map_or(learned, |word| word.class);
        if class == EdgeClass::Unknown && word.is_none() {
            return None;
        }
        Some(EdgeClassEntry {
            caller_procedure: names.name(row.key.caller_procedure).to_string(),
            callee: names.name(row.key.callee).to_string(),
            procedure: names.name(row.key.procedure).to_string(),
            class: class.into(),
            by: if word.is_some() { Word::Operator } else { Word::Learned },
            until: word.map(|word| word.expires.0),
            beneath: word.map_or(EdgeClass::Unknown, |_| learned).into(),
            since: row.told.since.0,
            evidence: Evidence { k: row.told.k, n: row.told.n },
        })
    });
    ClassPage {
        schema_version: SCHEMA_VERSION,
        service: service.to_owned(),
        at: now.0,
        edges: edges.collect(),
        switches: book.said.switches(service, now),
    }
}

/// The version of a page's content: the same in every process that knows the same, whenever it is
/// made and however much of a shield is left.
pub(crate) fn etag(page: &ClassPage) -> String {
    let lasting = ClassPage {
        at: 0,
        switches: SwitchOrder { shield_left_seconds: None, ..page.switches.clone() },
        ..page.clone()
    };
    let mut hasher = FixedState::with_seed(0).build_hasher();
    // Numbers and text: it cannot fail.
    hasher.write(&serde_json::to_vec(&lasting).unwrap_or_default());
    format!("\"{:016x}\"", hasher.finish())
}
