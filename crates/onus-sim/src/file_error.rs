//! What is wrong with a file that somebody typed, and where.

use std::fmt::{self, Write};

use serde_saphyr::{Location, Spanned};

/// What is wrong with a file that somebody typed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file, as it was named.
    pub file: String,
    /// Line and column, counted from 1; `None` where the fault is not in the text.
    pub place: Option<(u64, u64)>,
    /// What is wrong, and what is allowed.
    pub message: String,
    line: String,
}

/// A fault found in a part of a file, before its name is known.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) at: Location,
    pub(crate) message: String,
}

/// A fault at a value.
pub(crate) fn at<T>(value: &Spanned<T>, message: String) -> Fault {
    Fault { at: value.referenced, message }
}

/// A fault of the whole.
pub(crate) fn overall(message: String) -> Fault {
    Fault { at: Location::UNKNOWN, message }
}

impl FileError {
    pub(crate) fn of_parser(file: &str, text: &str, error: &serde_saphyr::Error) -> Self {
        let at = error.location().unwrap_or(Location::UNKNOWN);
        let message = error.without_snippet().to_string();
        // The place is told in the same way for all errors.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        Self::new(file, text, Fault { at, message: message[..end].to_owned() })
    }

    pub(crate) fn new(file: &str, text: &str, fault: Fault) -> Self {
        let place = (fault.at != Location::UNKNOWN).then(|| (fault.at.line(), fault.at.column()));
        let index = place.map_or(0, |(line, _)| line.saturating_sub(1) as usize);
        let line = text.lines().nth(index).unwrap_or_default().to_owned();
        Self { file: file.to_owned(), place, message: fault.message, line }
    }
}

impl fmt::Display for FileError {
    /// The message, and below it the line with a mark.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((line, column)) = self.place else {
            return write!(f, "{}: {}", self.file, self.message);
        };
        write!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let mut indent = String::new();
        for _ in 1..column {
            indent.write_char(' ')?;
        }
        write!(f, "\n {margin} |\n {number} | {}\n {margin} | {indent}^", self.line)
    }
}

impl std::error::Error for FileError {}
