//! What a dump made difficult: told once with its place, and counted ever after.

use std::fmt;

use crate::json::Why;

/// Something that was skipped, or that a reader of the result should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The rest of a document could not be read.
    Broken {
        /// Why not.
        why: Why,
        /// How many bytes of the file were passed over before reading could go on.
        bytes: u64,
    },
    /// The file is in no format that is known, or not in the one that was asked for.
    NotADump {
        /// What was looked for.
        wanted: &'static str,
    },
    /// A span without a trace id or an id of its own.
    NoId,
    /// A span whose service its trace does not name.
    NoService,
    /// Texts that are too long to be anything.
    LongText {
        /// How many there are in the file; the place is that of the first.
        texts: u64,
    },
    /// A column of a table that does not exist.
    NoColumn {
        /// Its name.
        column: String,
    },
    /// More spans than are kept.
    TooManySpans {
        /// How many are.
        limit: usize,
    },
    /// More names of services than are kept.
    TooManyServices {
        /// How many are.
        limit: usize,
    },
    /// More names of callees than are kept.
    TooManyPeers {
        /// How many are, with those of services.
        limit: usize,
    },
    /// More files than are told apart.
    TooManyFiles,
    /// Spans that are their own ancestors; the span at the place lost its parent.
    Cycle,
    /// A span whose parent is not in any file; its request is taken for the first of its trace.
    Orphan,
    /// A request that begins before the one that made it: clocks differ.
    Skew,
    /// A line of a list of failed spans that is none.
    NoPair,
    /// Listed spans that are in no file.
    NotInDump {
        /// How many there are.
        spans: u64,
    },
    /// Errors that are no failures of the callee, and were not counted as such.
    ClientErrors {
        /// Spans that carry one.
        spans: u64,
    },
    /// Every trace has an error, so the traces were chosen by it.
    OnlyFailedTraces {
        /// How many traces there are.
        traces: u64,
    },
    /// Callers of failed callees that were never seen to fail.
    SilentCallers {
        /// Their names.
        services: Vec<String>,
    },
}

impl Trouble {
    /// Whether something was left out.
    #[must_use]
    pub const fn skips(&self) -> bool {
        match self {
            Self::Broken { .. }
            | Self::NotADump { .. }
            | Self::NoId
            | Self::NoService
            | Self::LongText { .. }
            | Self::NoColumn { .. }
            | Self::TooManySpans { .. }
            | Self::TooManyServices { .. }
            | Self::TooManyPeers { .. }
            | Self::TooManyFiles
            | Self::Cycle
            | Self::NoPair => true,
            Self::Orphan
            | Self::Skew
            | Self::NotInDump { .. }
            | Self::ClientErrors { .. }
            | Self::OnlyFailedTraces { .. }
            | Self::SilentCallers { .. } => false,
        }
    }

    /// Whether each of them is a span that is not in the result.
    const fn costs_a_span(&self) -> bool {
        match self {
            Self::NoId
            | Self::NoService
            | Self::TooManySpans { .. }
            | Self::TooManyServices { .. } => true,
            Self::Broken { .. }
            | Self::NotADump { .. }
            | Self::LongText { .. }
            | Self::NoColumn { .. }
            | Self::TooManyPeers { .. }
            | Self::TooManyFiles
            | Self::Cycle
            | Self::NoPair
            | Self::Orphan
            | Self::Skew
            | Self::NotInDump { .. }
            | Self::ClientErrors { .. }
            | Self::OnlyFailedTraces { .. }
            | Self::SilentCallers { .. } => false,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { why, bytes } => write!(f, "{why}; {bytes} bytes skipped"),
            Self::NotADump { wanted } => write!(f, "this is not {wanted}; file skipped"),
            Self::NoId => f.write_str("a span without ids; skipped"),
            Self::NoService => f.write_str("a span whose trace does not name its service; skipped"),
            Self::LongText { texts: 1 } => f.write_str("a text too long to be kept; skipped"),
            Self::LongText { texts } => {
                write!(f, "the first of {texts} texts too long to be kept; skipped")
            }
            Self::NoColumn { column } => {
                write!(f, "there is no column {column:?}; file skipped")
            }
            Self::TooManySpans { limit } => {
                write!(f, "a span after the first {limit}; skipped")
            }
            Self::TooManyServices { limit } => write!(
                f,
                "a span of a service after the first {limit}; skipped; are ids part of the names?"
            ),
            Self::TooManyPeers { limit } => {
                write!(f, "a call of a name after the first {limit}; skipped")
            }
            Self::TooManyFiles => f.write_str("a file after the first 65536; skipped"),
            Self::Cycle => f.write_str("a span that is its own ancestor; its parent is ignored"),
            Self::Orphan => f.write_str(
                "a span whose parent is in no file; its request counts as the first of its trace",
            ),
            Self::Skew => f.write_str(
                "a request that begins before its caller's does: clocks differ; only the minutes \
                 of requests are used",
            ),
            Self::NoPair => f.write_str("not a trace id and a span id; line skipped"),
            Self::NotInDump { spans } => {
                write!(f, "{spans} of the listed spans are in no file")
            }
            Self::ClientErrors { spans } => write!(
                f,
                "{spans} spans have errors that their status calls none of the callee's; they \
                 count as answers (--client-errors counts them as failures)"
            ),
            Self::OnlyFailedTraces { traces } => write!(
                f,
                "each of the {traces} traces has an error: if they were chosen by it, P is too high"
            ),
            Self::SilentCallers { services } => {
                let shown = &services[..services.len().min(NAMED)];
                write!(f, "never seen to fail, though their callees did: {}", shown.join(", "))?;
                if services.len() > NAMED {
                    write!(f, " and {} more", services.len() - NAMED)?;
                }
                f.write_str("; a caller that does not report its errors looks fail-open too")
            }
        }
    }
}

/// A trouble with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file, if it is about one.
    pub file: Option<String>,
    /// The place in the file, in bytes from its start once it is decompressed.
    pub at: Option<u64>,
    /// What it is.
    pub trouble: Trouble,
    /// How many more there were like this, whose places are not kept.
    pub more: u64,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(at) = self.at {
            write!(f, "byte {at}: ")?;
        }
        write!(f, "{}", self.trouble)?;
        if self.more > 0 {
            write!(f, " (and {} more)", self.more)?;
        }
        Ok(())
    }
}

/// What was left out, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files without anything readable.
    pub files: u64,
    /// Documents, or messages within them, that broke off in the middle.
    pub documents: u64,
    /// Bytes that could not be read, or stood behind such.
    pub bytes: u64,
    /// Spans that were read and could not be used.
    pub spans: u64,
    /// Calls of what has no room for its name.
    pub calls: u64,
    /// Texts too long to be kept.
    pub texts: u64,
    /// Parents ignored because the span is its own ancestor.
    pub parents: u64,
    /// Lines of lists of failed spans.
    pub lines: u64,
}

impl Skipped {
    /// All of them with their names.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); 8] {
        let Self { files, documents, bytes, spans, calls, texts, parents, lines } = *self;
        [
            ("files", files),
            ("documents", documents),
            ("bytes", bytes),
            ("spans", spans),
            ("calls", calls),
            ("texts", texts),
            ("parents", parents),
            ("lines", lines),
        ]
    }

    /// Whether anything was.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (what, count) in self.counts() {
            if count > 0 {
                write!(f, "{}{count} {what}", if first { "" } else { ", " })?;
                first = false;
            }
        }
        if first { f.write_str("nothing") } else { Ok(()) }
    }
}

/// A trouble, where its file and place are, and how many more are like it.
#[derive(Debug)]
struct Note {
    place: Option<(u16, u64)>,
    trouble: Trouble,
    more: u64,
}

/// All troubles so far. Of each kind the first few are kept, and all are counted.
#[derive(Debug, Default)]
pub(crate) struct Troubles {
    list: Vec<Note>,
    pub(crate) skipped: Skipped,
}

impl Troubles {
    /// Notes a trouble at a place in a file.
    pub(crate) fn at(&mut self, file: u16, at: u64, trouble: Trouble) {
        self.note(Some((file, at)), trouble);
    }

    /// Notes a trouble of the whole.
    pub(crate) fn whole(&mut self, trouble: Trouble) {
        self.note(None, trouble);
    }

    fn note(&mut self, place: Option<(u16, u64)>, trouble: Trouble) {
        let skipped = &mut self.skipped;
        match &trouble {
            Trouble::Broken { bytes, .. } => {
                skipped.documents += 1;
                skipped.bytes += bytes;
            }
            Trouble::NotADump { .. } | Trouble::NoColumn { .. } | Trouble::TooManyFiles => {
                skipped.files += 1;
            }
            Trouble::LongText { texts } => skipped.texts += texts,
            Trouble::Cycle => skipped.parents += 1,
            Trouble::NoPair => skipped.lines += 1,
            Trouble::TooManyPeers { .. } => skipped.calls += 1,
            Trouble::NoId
            | Trouble::NoService
            | Trouble::TooManySpans { .. }
            | Trouble::TooManyServices { .. }
            | Trouble::Orphan
            | Trouble::Skew
            | Trouble::NotInDump { .. }
            | Trouble::ClientErrors { .. }
            | Trouble::OnlyFailedTraces { .. }
            | Trouble::SilentCallers { .. } => {}
        }
        skipped.spans += u64::from(trouble.costs_a_span());
        let kind = std::mem::discriminant(&trouble);
        let alike = |note: &&mut Note| std::mem::discriminant(&note.trouble) == kind;
        let mut of_kind = self.list.iter_mut().rev().filter(alike);
        if let Some(last) = of_kind.next()
            && of_kind.count() + 1 >= SHOWN
        {
            last.more += 1;
            return;
        }
        self.list.push(Note { place, trouble, more: 0 });
    }

    /// The troubles with the names of their files, in the order in which they came.
    pub(crate) fn warnings(self, files: &[String]) -> Vec<Warning> {
        let warning = |Note { place, trouble, more }| Warning {
            file: place.map(|(file, _)| files[usize::from(file)].clone()),
            at: place.map(|(_, at)| at),
            trouble,
            more,
        };
        self.list.into_iter().map(warning).collect()
    }
}

/// Names in one message.
const NAMED: usize = 10;

/// Enough to see a pattern.
const SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_file_place_and_how_many_more() {
        let mut troubles = Troubles::default();
        for at in 0..8 {
            troubles.at(1, at, Trouble::NoId);
        }
        troubles.at(0, 77, Trouble::Broken { why: Why::End, bytes: 3 });
        troubles.at(1, 8, Trouble::NoId);
        let services = (0..12).map(|number| format!("s{number}")).collect();
        troubles.whole(Trouble::SilentCallers { services });
        let skipped = Skipped { documents: 1, bytes: 3, spans: 9, ..Skipped::default() };
        assert_eq!(troubles.skipped, skipped);
        assert_eq!(skipped.to_string(), "1 documents, 3 bytes, 9 spans");
        let warnings = troubles.warnings(&["a".to_owned(), "b".to_owned()]);
        let lines: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "b: byte 0: a span without ids; skipped",
                "b: byte 1: a span without ids; skipped",
                "b: byte 2: a span without ids; skipped",
                "b: byte 3: a span without ids; skipped",
                "b: byte 4: a span without ids; skipped (and 4 more)",
                "a: byte 77: the input ends in the middle; 3 bytes skipped",
                "never seen to fail, though their callees did: s0, s1, s2, s3, s4, s5, s6, s7, s8, \
                 s9 and 2 more; a caller that does not report its errors looks fail-open too",
            ]
        );
        assert!(!Skipped::default().any());
        assert_eq!(Skipped::default().to_string(), "nothing");
    }
}
