//! What the client outside reads of a tree's root.

use onus_core::CalleeClaim;

use crate::spelling::Spelt;

/// What the client outside reads of a tree's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeAnswer {
    /// An answer that is no error.
    Ok,
    /// An error, or the lack of an answer.
    Error(CalleeClaim),
}

impl TreeAnswer {
    /// The word of the vectors.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error(read) => read.as_str(),
        }
    }
}

impl Spelt for TreeAnswer {
    const WHAT: &'static str = "answer of the root";

    fn all() -> Vec<(&'static str, Self)> {
        let errors = CalleeClaim::ALL.into_iter().map(Self::Error);
        [Self::Ok].into_iter().chain(errors).map(|answer| (answer.as_str(), answer)).collect()
    }
}
