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
    text.replace('\\', "\\\\").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use onus_api::{IncidentEdge, IncidentRoot};

    use super::*;

    #[test]
    fn each_row_has_the_cells_of_its_table_whatever_services_are_called() {
        let name = "a|b \\| c";
        let incident = Incident {
            origin: Some(name.to_owned()),
            edges: vec![IncidentEdge {
                caller: name.to_owned(),
                callee: name.to_owned(),
                ..IncidentEdge::default()
            }],
            roots: vec![IncidentRoot {
                service: name.to_owned(),
                path: vec![name.to_owned(), name.to_owned()],
                ..IncidentRoot::default()
            }],
            ..Incident::default()
        };
        let page = render(&incident);
        let (mut cells, mut rows) = (0, 0);
        for line in page.lines() {
            // As GitHub's tables have it: a sign with a backslash before it ends no cell.
            let bare = line.replace("\\\\", "").replace("\\|", "");
            match (bare.starts_with('|'), cells) {
                (false, _) => cells = 0,
                (true, 0) => cells = bare.matches('|').count(),
                (true, _) => assert_eq!(bare.matches('|').count(), cells, "{line}"),
            }
            rows += u32::from(cells > 0);
        }
        assert!(rows > 12, "{page}");
    }
}
