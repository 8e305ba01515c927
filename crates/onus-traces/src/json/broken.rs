//! Why a document cannot be read on.

use std::{fmt, io};

/// The place where reading ended, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Bytes from the start of the input.
    pub(crate) at: u64,
    pub(crate) why: Why,
}

/// What was found that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The input ends inside a value.
    End,
    /// A byte that cannot stand there.
    Byte {
        /// The byte.
        found: u8,
        /// What could have stood there.
        wanted: &'static str,
    },
    /// A message longer than what contains it, or of a kind that does not exist.
    Message(&'static str),
    /// The input itself cannot be read, or not be decompressed.
    Input(String),
}

impl Why {
    pub(crate) fn input(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::End
        } else {
            Self::Input(error.to_string())
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("the input ends in the middle"),
            Self::Byte { found, wanted } => {
                write!(f, "'{}' where {wanted} should be", found.escape_ascii())
            }
            Self::Message(what) => f.write_str(what),
            Self::Input(error) => f.write_str(error),
        }
    }
}
