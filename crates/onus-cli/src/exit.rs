//! How the command ends.

use std::io;
use std::process::ExitCode;

use onus_demo::{DemoError, Misuse};
use onus_sim::FileError;

use crate::simulate::{Interrupted, Missing};

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done = 0,
    /// It could not.
    Failed = 1,
    /// What was asked makes no sense; nothing was done. The parser ends with this code too.
    Misused = 2,
    /// It did what was asked with a part of the input, and told what it skipped; or it checked
    /// whether something may be done, and told which evidence is missing.
    Incomplete = 3,
    /// The user stopped it; what it had is printed.
    Interrupted = 130,
}

impl Exit {
    /// Tells people of an error, and how the command ends.
    pub(crate) fn from_result(result: anyhow::Result<Self>) -> Self {
        let error = match result {
            Ok(exit) => return exit,
            Err(error) => error,
        };
        // Whoever closed standard output has seen enough.
        let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if error.downcast_ref().is_some_and(closed) {
            return Self::Done;
        }
        if let Some(refused) = error.downcast_ref::<Refused>() {
            anstream::eprintln!("error: {refused}");
            return Self::Misused;
        }
        if let Some(error) = error.downcast_ref::<FileError>() {
            anstream::eprintln!("error: {error}");
            return Self::Misused;
        }
        if let Some(error) = error.downcast_ref::<Missing>() {
            anstream::eprintln!("error: {error}");
            return Self::Misused;
        }
        if error.is::<Interrupted>() {
            anstream::eprintln!("error: failed to {error:#}");
            return Self::Interrupted;
        }
        let misuse = match error.downcast_ref() {
            Some(DemoError::Misuse(misuse)) => Some(misuse),
            Some(
                DemoError::NoService
                | DemoError::TwoServices { .. }
                | DemoError::UnknownCallee { .. }
                | DemoError::Config { .. }
                | DemoError::Circle { .. }
                | DemoError::Sidecar { .. }
                | DemoError::Listen(_)
                | DemoError::Count { .. },
            )
            | None => error.downcast_ref::<Misuse>(),
        };
        match misuse {
            Some(misuse) => {
                anstream::eprintln!("error: {misuse}\n\nFor more information, try '--help'.");
                Self::Misused
            }
            None => {
                anstream::eprintln!("error: failed to {error:#}");
                Self::Failed
            }
        }
    }
}

/// What was asked makes no sense, and this says why and what would.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}
