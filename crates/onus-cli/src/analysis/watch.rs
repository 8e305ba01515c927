//! Looking again until interrupted.

use std::thread;
use std::time::Duration;

use super::print;
use crate::cli::Output;

const PAUSE: Duration = Duration::from_secs(2);

/// Prints what is seen, once or every other second. A table stands where the one before stood;
/// documents for tools follow one another. A look that fails is told, and the next one may not.
pub(crate) fn watch(
    again: bool,
    output: Output,
    mut look: impl FnMut() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    if !again {
        return print(&look()?);
    }
    let mut seen = false;
    loop {
        match look() {
            Ok(text) => {
                seen = true;
                print(&match output {
                    // Home, and nothing of what an earlier look has left.
                    Output::Table => format!("\u{1b}[H\u{1b}[2J{text}"),
                    Output::Json => text,
                })?;
            }
            // Whoever has seen nothing yet has mistyped something.
            Err(error) if !seen => return Err(error),
            Err(error) => anstream::eprintln!("note: failed to {error:#}; it is tried again"),
        }
        thread::park_timeout(PAUSE);
    }
}
