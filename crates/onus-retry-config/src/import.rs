//! The way in: files one after the other, then what they say together.

use std::collections::BTreeMap;
use std::thread;

use crate::cursor::{Cursor, Source};
use crate::dialects::{self, Findings};
use crate::documents::documents;
use crate::node::Node;
use crate::policy::{CalleeBudget, Place, Policy};
use crate::unread::{Unread, Why};

/// An import of any number of files. No file can make it fail: what cannot be read is told.
#[derive(Debug, Default)]
pub struct Import {
    findings: Findings,
    unread: Vec<Unread>,
}

/// What the files say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryConfig {
    /// The policies, with the budgets that hold them back.
    pub policies: Vec<Policy>,
    /// Budgets that are for all callers of a service.
    pub budgets: Vec<CalleeBudget>,
    /// What Istio does on every route that says nothing of retries, where anything is of Istio.
    pub istio_default: Option<Policy>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// Objects that have no retries in them, by kind.
    pub passed_over: BTreeMap<String, u64>,
}

impl Import {
    /// Reads a file, which messages call `name`: YAML or JSON, of one document or many.
    pub fn read(&mut self, name: &str, text: &str) {
        if text.len() > LARGEST {
            let place = Place { file: name.to_owned(), line: 1, object: String::new() };
            self.unread.push(Unread { place, why: Why::TooLarge { limit: LARGEST } });
            return;
        }
        for (lines_before, document) in documents(text) {
            self.read_document(name, lines_before, document);
        }
    }

    fn read_document(&mut self, file: &str, lines_before: u64, text: &str) {
        let source = Source { file, lines_before, unread: Default::default() };
        match parse(text) {
            Ok(node) => {
                let root = Cursor::new(&node, &source, "");
                if !dialects::read(&root, &mut self.findings) {
                    root.unread(Why::NothingKnown);
                }
            }
            Err((line, error)) => {
                let line = lines_before + line;
                let place = Place { file: file.to_owned(), line, object: String::new() };
                self.unread.push(Unread { place, why: Why::Syntax(error) });
            }
        }
        self.unread.append(&mut source.unread.into_inner());
    }

    /// Joins what was read: what is attached to routes and services of other files too.
    #[must_use]
    pub fn finish(self) -> RetryConfig {
        let Self { findings, mut unread } = self;
        let mut config = findings.join(&mut unread);
        unread.sort_by(|one, other| one.place.cmp(&other.place));
        config.unread = unread;
        config
    }
}

/// The document, or the line and what is wrong there.
///
/// A level of nesting takes 40 KB of the stack where nothing is optimised, so the parser has one of
/// its own, whoever calls.
pub(crate) fn parse(text: &str) -> Result<Node, (u64, String)> {
    thread::scope(|scope| {
        let parser = thread::Builder::new().stack_size(STACK);
        let parser = parser.spawn_scoped(scope, || parse_here(text));
        let parsed = parser.map(|parser| parser.join());
        match parsed {
            Ok(Ok(parsed)) => parsed,
            Ok(Err(_)) => Err((1, "the parser has failed".to_owned())),
            Err(error) => Err((1, error.to_string())),
        }
    })
}

fn parse_here(text: &str) -> Result<Node, (u64, String)> {
    let options = serde_saphyr::options! {
        // A mesh in one list; files are limited by their size.
        budget: serde_saphyr::budget! {
            max_events: EVENTS,
            max_nodes: EVENTS,
            max_recorded_anchor_events: ANCHORED,
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
        },
        // `n` and `on` are names of namespaces.
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().map_or(1, |location| location.line());
        let text = error.to_string();
        // The place is told before it.
        let text = text.split(" at line ").next().unwrap_or(&text).to_owned();
        (line, text)
    })
}

/// A file of this size takes about ten times as much memory while it is read.
const LARGEST: usize = 64 << 20;

/// What anchors hold: people repeat a block or two, and aliases of aliases are an attack.
const ANCHORED: usize = 100_000;

/// The deepest of these configurations, a dump of Envoy, has about 30 levels.
const DEPTH: usize = 100;

/// Enough for that many, twice.
const STACK: usize = 8 << 20;

/// More values than the largest file can have.
const EVENTS: usize = LARGEST;
