//! The report as one page that needs nothing else.

use std::fmt::Write;

use onus_api::{Incident, Minute};

use super::words::{count, interval, summary, time};

pub(super) fn render(incident: &Incident) -> String {
    let title = format!("Retries from {} to {} UTC", time(incident.from), time(incident.to));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n<table>"
    );
    for (what, value) in summary(incident) {
        // Writing to a string cannot fail.
        let _ =
            writeln!(page, "<tr><th scope=\"row\">{what}</th><td>{}</td></tr>", escaped(&value));
    }
    page += "</table>\n";
    page += &chart(&incident.minutes);
    let edges = incident.edges.iter().map(|edge| {
        let counts = &edge.counts;
        [
            escaped(&edge.caller),
            escaped(&edge.callee),
            count(counts.calls() as f64),
            count(counts.calls_failed as f64),
            count(counts.attempts() as f64),
            count(counts.suppressed as f64),
            count(edge.direct),
        ]
    });
    let header =
        ["caller", "callee", "calls", "failed", "attempts", "suppressed", "retries not made"];
    page += &table("Edges", header, &edges.collect::<Vec<_>>());
    let roots = incident.roots.iter().map(|root| {
        let path: Vec<_> = root.path.iter().map(|service| escaped(service)).collect();
        [
            escaped(&root.service),
            path.join(" \u{2192} "),
            count(root.requests as f64),
            interval(&root.prevented),
        ]
    });
    page += &table(
        "Roots",
        ["service", "way to the origin", "requests", "prevented"],
        &roots.collect::<Vec<_>>(),
    );
    page + "<p>Prevented: what blind retries of the configured policies would have made beside what was seen. \
            The lower end takes every attempt to fail by itself, the upper end takes failures to last.</p>\n</body></html>\n"
}

fn table<const N: usize>(title: &str, header: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let cells = |tag: &str, cells: &[String]| -> String {
        cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect()
    };
    let rows: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", row))).collect();
    let header = cells("th", &header.map(str::to_owned));
    format!("<h2>{title}</h2>\n<table><tr>{header}</tr>\n{rows}</table>\n")
}

/// Failed calls and suppressed retries by the minute.
fn chart(minutes: &[Minute]) -> String {
    let (Some(first), Some(last)) = (minutes.first(), minutes.last()) else { return String::new() };
    let most = minutes.iter().map(|it| it.failed.max(it.suppressed)).max().unwrap_or(0).max(1);
    let slots = (last.at - first.at) / 60_000 + 1;
    let width = 720.0 / slots as f64;
    let mut svg = String::from(
        "<svg viewBox=\"0 0 720 130\" role=\"img\" aria-label=\"failed calls and suppressed retries by the minute\">\n",
    );
    for minute in minutes {
        let x = (minute.at - first.at) as f64 / 60_000.0 * width;
        for (class, count, offset) in
            [("f", minute.failed, 0.0), ("s", minute.suppressed, width / 2.0)]
        {
            let height = 100.0 * count as f64 / most as f64;
            let _ = writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{height:.1}\"><title>{} {count}</title></rect>",
                x + offset,
                110.0 - height,
                (width / 2.0).max(0.5),
                time(minute.at),
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"0\" y=\"126\">{}</text><text x=\"720\" y=\"126\" text-anchor=\"end\">{} UTC; red failed calls, blue suppressed retries, at most {} a minute</text></svg>",
        time(first.at),
        time(last.at),
        count(most as f64),
    );
    svg
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse}td,th{padding:.2rem .8rem;border-bottom:1px solid #ccc;text-align:left}\
svg{width:100%;margin:1rem 0}svg text{font-size:11px}.f{fill:#c33}.s{fill:#36c}";

/// Text that is no markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use onus_api::IncidentEdge;

    use super::*;

    #[test]
    fn names_of_services_are_no_markup_and_nothing_is_loaded() {
        let edge = IncidentEdge {
            caller: "<script>".to_owned(),
            callee: "a\"b".to_owned(),
            ..IncidentEdge::default()
        };
        let minute = Minute { at: 60_000, calls: 10, failed: 5, retries: 0, suppressed: 5 };
        let incident = Incident { edges: vec![edge], minutes: vec![minute], ..Incident::default() };
        let page = render(&incident);
        assert!(page.contains("<td>&lt;script&gt;</td><td>a&quot;b</td>"), "{page}");
        assert!(page.contains("<rect class=\"f\""), "{page}");
        for loads in ["<script", "http:", "https:", "@import", "url("] {
            assert!(!page.contains(loads), "{loads}");
        }
    }

    /// Elements that have no end.
    const VOID: [&str; 1] = ["meta"];

    /// What is wrong with a page: elements that are not closed in their order, attributes without
    /// quotes, and signs that are markup to others.
    fn mistakes(page: &str) -> Vec<String> {
        let body = page.strip_prefix("<!doctype html>\n").expect("it says what it is");
        let (mut open, mut found) = (Vec::new(), Vec::new());
        for part in body.split('<').skip(1) {
            let Some((tag, text)) = part.split_once('>') else {
                found.push(format!("<{part} has no end"));
                continue;
            };
            let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
            if tag.starts_with('/') {
                let last = open.pop();
                if last != Some(name) {
                    found.push(format!("</{name}> closes {last:?}"));
                }
            } else if !VOID.contains(&name) {
                open.push(name);
            }
            let attributes = tag.split_once(' ').map_or("", |(_, attributes)| attributes);
            if attributes.split('"').step_by(2).any(|outside| {
                !outside.is_empty() && (!outside.ends_with('=') || outside.contains(['\'', '<']))
            }) {
                found.push(format!("attributes of <{tag}>"));
            }
            let is_style = open.last() == Some(&"style");
            let entities = ["amp;", "lt;", "gt;", "quot;"];
            if !is_style
                && text.split('&').skip(1).any(|it| !entities.iter().any(|e| it.starts_with(e)))
            {
                found.push(format!("a sign in {text:?}"));
            }
        }
        found.extend(open.iter().map(|name| format!("<{name}> is not closed")));
        found
    }

    #[test]
    fn a_page_is_well_formed_whatever_services_are_called() {
        let hostile = ["<script>alert(1)</script>", "a\"b'c", "x & y", "a|b", "</td>"];
        let edges = hostile.map(|name| IncidentEdge {
            caller: name.to_owned(),
            callee: name.to_owned(),
            ..IncidentEdge::default()
        });
        let roots = hostile.map(|name| onus_api::IncidentRoot {
            service: name.to_owned(),
            path: vec![name.to_owned(), "d".to_owned()],
            ..onus_api::IncidentRoot::default()
        });
        let minute = |at| Minute { at, calls: 10, failed: 5, retries: 0, suppressed: 5 };
        let incident = Incident {
            origin: Some(hostile[0].to_owned()),
            edges: edges.into(),
            roots: roots.into(),
            minutes: vec![minute(60_000), minute(180_000)],
            missing: vec!["the callers of <b>".to_owned()],
            ..Incident::default()
        };
        for incident in [incident, Incident::default()] {
            assert_eq!(mistakes(&render(&incident)), [""; 0]);
        }
        for (page, says) in [
            ("<p>", "<p> is not closed"),
            ("<p><b></p></b>", "</p> closes Some(\"b\")"),
            ("<p class=x></p>", "attributes of"),
            ("<p>a & b</p>", "a sign in"),
        ] {
            let found = mistakes(&format!("<!doctype html>\n{page}")).join(" ");
            assert!(found.contains(says), "{page}: {found}");
        }
    }
}
