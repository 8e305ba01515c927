//! The metrics of the mesh, asked for one after the other: a server that is in trouble is not
//! asked all at once.

use anyhow::Context;
use http::StatusCode;
use onus_audit::{Metrics, questions};
use onus_promql::{AskError, Client, Endpoint, Limits};

use crate::cli::AuditOptions;
use crate::exit::Refused;

/// What the server says, and what it refuses to say.
pub(super) fn ask(url: &str, options: &AuditOptions) -> anyhow::Result<(Metrics, Vec<String>)> {
    let endpoint = Endpoint::new(url).map_err(|error| Refused(error.to_string()))?;
    let (window, at) = (&*options.window, options.at.as_deref());
    check_window(window)?;
    let mut client = Client::new(endpoint, Limits::default());
    if let Some(path) = &options.prom_token_file {
        let read = || format!("read the token in {}", path.display());
        let token = std::fs::read_to_string(path).with_context(read)?;
        client = client.token(token.trim()).with_context(read)?;
    }
    if let Some(path) = &options.prom_ca {
        client = client.authorities(path.clone());
    }
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
                Err(error) => {
                    let advice = advice(&error, options);
                    return Err(error).with_context(|| format!("ask {url}{advice}"));
                }
            }
        }
        Ok((metrics.finish(), refused))
    })
}

/// What may be missing on the command line.
fn advice(error: &AskError, options: &AuditOptions) -> &'static str {
    let unknown = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
    if matches!(error, AskError::Status(status) if unknown.contains(status)) {
        return match options.prom_token_file {
            Some(_) => " with the token of --prom-token-file",
            None => " without --prom-token-file",
        };
    }
    if matches!(error, AskError::Tls { .. }) && options.prom_ca.is_none() {
        return " without --prom-ca";
    }
    ""
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
