//! An event of the agent as one line of a log.

use std::fmt::{self, Write as _};

use tracing::Event;
use tracing::field::{Field, Visit};

/// The message of an event, and its fields behind it.
#[must_use]
pub fn log_text(event: &Event<'_>) -> String {
    let mut line = Line::default();
    event.record(&mut line);
    line.message + &line.fields
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
