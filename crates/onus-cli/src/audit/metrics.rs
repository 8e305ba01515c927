//! The metrics of the mesh, asked for one after the other: a server that is in trouble is not
//! asked all at once.

use anyhow::Context;
use onus_audit::{Metrics, questions};
use onus_promql::{AskError, Client, Endpoint, Limits};

use crate::exit::Refused;

/// What the server says, and what it refuses to say.
pub(super) fn ask(
    url: &str,
    window: &str,
    at: Option<&str>,
) -> anyhow::Result<(Metrics, Vec<String>)> {
    let endpoint = Endpoint::new(url).map_err(|error| Refused(error.to_string()))?;
    check_window(window)?;
    let client = Client::new(endpoint, Limits::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut metrics = Metrics::default();
        let mut refused = Vec::new();
        for question in questions(window) {
            match client.ask(&question.promql, at).await {
                Ok(answer) => {
                    metrics.take(question.about, &answer.samples);
                    refused.extend(answer.warnings.iter().map(|it| format!("{url}: {it}")));
                }
                // The others may be answered all the same.
                Err(error @ (AskError::Refused { .. } | AskError::TooLarge(_))) => {
                    refused.push(format!("{url}: {error}: {}", question.promql));
                }
                Err(error) => return Err(error).with_context(|| format!("ask {url}")),
            }
        }
        Ok((metrics.finish(), refused))
    })
}

/// What would be pasted into a query is a time and nothing else.
fn check_window(window: &str) -> Result<(), Refused> {
    let mut rest = window;
    while let Some(part) = time(rest) {
        rest = part;
        if rest.is_empty() {
            return Ok(());
        }
    }
    Err(Refused(format!("--window is `{window}`; a time such as 30m, 6h or 1h30m is expected")))
}

/// What follows a number with its unit.
fn time(text: &str) -> Option<&str> {
    let unit = text.trim_start_matches(|at: char| at.is_ascii_digit());
    if unit.len() == text.len() {
        return None;
    }
    ["ms", "s", "m", "h", "d", "w", "y"].iter().find_map(|name| unit.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_time() {
        for (window, expected) in [
            ("1h", true),
            ("1h30m", true),
            ("500ms", true),
            ("7d", true),
            ("h", false),
            ("1", false),
            ("", false),
            ("1h ", false),
            ("1h])) or vector(1", false),
            ("1.5h", false),
            ("1h:5m", false),
        ] {
            assert_eq!(check_window(window).is_ok(), expected, "{window:?}");
        }
    }
}
