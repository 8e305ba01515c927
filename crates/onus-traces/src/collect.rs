//! What all formats fill: spans, names, troubles.

use std::collections::HashSet;

use crate::id;
use crate::json::{Broken, Json, Why};
use crate::names::Names;
use crate::span::{Draft, Span};
use crate::trouble::{Trouble, Troubles};

/// Everything that was read so far, and the file that is being read.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) spans: Vec<Span>,
    pub(crate) names: Names,
    pub(crate) troubles: Troubles,
    pub(crate) files: Vec<String>,
    /// Spans that failed according to lists from elsewhere.
    pub(crate) listed: HashSet<(u128, u64)>,
    /// The number of the file that is being read.
    pub(crate) file: u16,
    limits: Limits,
}

/// How much is kept, so that no dump takes all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Spans; each takes 64 bytes, and about as much again while they are counted.
    pub spans: usize,
    /// Names of services.
    pub services: usize,
}

impl Default for Limits {
    /// 20 million spans, and 100 000 services: ten times the largest mesh known.
    fn default() -> Self {
        Self { spans: 20_000_000, services: 100_000 }
    }
}

impl Collector {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            spans: Vec::new(),
            names: Names::new(limits.services),
            troubles: Troubles::default(),
            files: Vec::new(),
            listed: HashSet::new(),
            file: 0,
            limits,
        }
    }

    /// The next file is called `name`; false if there are too many.
    pub(crate) fn begin(&mut self, name: &str) -> bool {
        let Ok(file) = u16::try_from(self.files.len()) else {
            self.troubles.whole(Trouble::TooManyFiles);
            return false;
        };
        self.file = file;
        self.files.push(name.to_owned());
        true
    }

    /// The id of a trace in this file.
    pub(crate) fn trace_id(&self, text: &[u8]) -> Option<u128> {
        id::trace_id(text, self.file)
    }

    /// Keeps a span.
    #[inline]
    pub(crate) fn push(&mut self, draft: &Draft) {
        let Some(span) = draft.span(self.file) else {
            self.trouble(draft.at, Trouble::NoId);
            return;
        };
        if self.spans.len() >= self.limits.spans {
            self.trouble(draft.at, Trouble::TooManySpans { limit: self.limits.spans });
            return;
        }
        self.spans.push(span);
        if span.peer == TOO_MANY {
            self.spans.last_mut().expect("it was pushed").peer = 0;
            self.trouble(draft.at, Trouble::TooManyPeers { limit: self.limits.services });
        }
    }

    /// The number of a service's name, or the trouble that there are too many.
    pub(crate) fn service(&mut self, name: &[u8]) -> u32 {
        self.names.number(name).unwrap_or(TOO_MANY)
    }

    /// Gives the spans from `first` on the service that their numbers mean to their document.
    ///
    /// Formats name the services of a group of spans before or after the spans; until the group
    /// is complete a span holds a number that only its document knows.
    pub(crate) fn settle(&mut self, first: usize, service: impl Fn(u32) -> Option<u32>) {
        let mut kept = first;
        for index in first..self.spans.len() {
            let mut span = self.spans[index];
            let trouble = match service(span.service) {
                Some(TOO_MANY) => Trouble::TooManyServices { limit: self.limits.services },
                Some(number) => {
                    span.service = number;
                    self.spans[kept] = span;
                    kept += 1;
                    continue;
                }
                None => Trouble::NoService,
            };
            self.trouble(span.at, trouble);
        }
        self.spans.truncate(kept);
    }

    #[cold]
    pub(crate) fn trouble(&mut self, at: u64, trouble: Trouble) {
        self.troubles.at(self.file, at, trouble);
    }

    /// Notes where a document ended too early, and that `bytes` more were passed over.
    pub(crate) fn broken(&mut self, broken: Broken, bytes: u64) {
        self.trouble(broken.at, Trouble::Broken { why: broken.why, bytes });
    }

    /// Notes the texts that the walk passed over.
    pub(crate) fn long_texts(&mut self, json: &Json<'_>) {
        if let Some((texts, at)) = json.long {
            self.trouble(at, Trouble::LongText { texts });
        }
    }

    /// Notes that a file could not be opened for reading.
    pub(crate) fn unreadable(&mut self, error: &std::io::Error) {
        self.broken(Broken { at: 0, why: Why::input(error) }, 0);
    }
}

/// The number of a service whose name had no room.
pub(crate) const TOO_MANY: u32 = u32::MAX;
