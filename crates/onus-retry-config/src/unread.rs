//! What could not be read: told with its place, never dropped in silence.

use std::fmt;

use crate::policy::Place;

/// Something in a configuration that is not in the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Unread {
    /// Where it is.
    pub place: Place,
    /// Why not.
    pub why: Why,
}

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The document is neither YAML nor JSON.
    Syntax(String),
    /// The file is larger than is read.
    TooLarge {
        /// What is read, in bytes.
        limit: usize,
    },
    /// There is nothing in the document that is known.
    NothingKnown,
    /// A kind that is not known, with a field that is about retries.
    UnknownKind,
    /// A field about retries that is not known.
    UnknownField,
    /// A value that is not what the field holds.
    NotA {
        /// What it should be.
        wanted: &'static str,
        /// What is there.
        found: String,
    },
    /// A field that is needed is missing.
    Missing(&'static str),
    /// A condition that is not known; it is taken for one that covers every failure.
    UnknownCondition(String),
    /// What is there may change retries in ways that are not followed.
    NotFollowed(&'static str),
    /// Nothing that was read is what this is attached to.
    Unattached(String),
}

impl fmt::Display for Unread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.why)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => write!(formatter, "{error}; document skipped"),
            Self::TooLarge { limit } => {
                write!(formatter, "larger than {} MiB; file skipped", limit >> 20)
            }
            Self::NothingKnown => {
                formatter.write_str("no retry configuration that is known; document skipped")
            }
            Self::UnknownKind => {
                formatter.write_str("a kind that is not followed, with a field about retries")
            }
            Self::UnknownField => formatter.write_str("a field that is not known; skipped"),
            Self::NotA { wanted, found } => {
                write!(formatter, "{wanted} is expected, not {found}; skipped")
            }
            Self::Missing(field) => write!(formatter, "`{field}` is missing; skipped"),
            Self::UnknownCondition(word) => {
                write!(formatter, "the condition `{word}` is not known; taken for every failure")
            }
            Self::NotFollowed(what) => formatter.write_str(what),
            Self::Unattached(target) => {
                write!(
                    formatter,
                    "{target} is in no file; what is attached to it is not in effect here"
                )
            }
        }
    }
}
