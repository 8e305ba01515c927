//! The report as Markdown.

use std::fmt::Write;

use onus_api::Incident;

use super::words::{count, interval, summary, time};

pub(crate) fn render(incident: &Incident) -> String {
    let mut text = format!(
        "# Retries from {} to {} UTC\n\n| | |\n|---|---|\n",
        time(incident.from),
        time(incident.to)
    );
    for (what, value) in summary(incident) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {what} | {} |", cell(&value));
    }
    if !incident.edges.is_empty() {
        text += "\n## Edges\n\n| caller | callee | calls | failed | attempts | suppressed | retries not made |\n|---|---|--:|--:|--:|--:|--:|\n";
    }
    for edge in &incident.edges {
        let counts = &edge.counts;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            cell(&edge.caller),
            cell(&edge.callee),
            count(counts.calls() as f64),
            count(counts.calls_failed as f64),
            count(counts.attempts() as f64),
            count(counts.suppressed as f64),
            count(edge.direct),
        );
    }
    if !incident.roots.is_empty() {
        text += "\n## Roots\n\n| service | way to the origin | requests | prevented |\n|---|---|--:|--:|\n";
    }
    for root in &incident.roots {
        let path: Vec<_> = root.path.iter().map(|service| cell(service)).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            cell(&root.service),
            path.join(" \u{2192} "),
            count(root.requests as f64),
            interval(&root.prevented),
        );
    }
    text + "\nPrevented: what blind retries of the configured policies would have made beside what was seen. \
            The lower end takes every attempt to fail by itself, the upper end takes failures to last; \
            the first figure takes a part to last, as first and second attempts tell.\n"
}

/// Text that cannot end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
