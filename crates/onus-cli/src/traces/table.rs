//! The result for people.

use std::cmp::Reverse;
use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table, presets};
use onus_traces::{Edge, Histogram, Report};

/// What was read, and the edges; if `wide`, with evidence, claims and depth.
pub(crate) fn render(report: &Report, wide: bool) -> String {
    let mut text = headline(report);
    // Writing to a string cannot fail.
    let _ = write!(text, "\n\n{}\n", edges(report, wide));
    if wide {
        if !report.claims.is_empty() {
            let _ =
                write!(text, "\nFailed requests, by who would own them:\n\n{}\n", claims(report));
        }
        let depths = &report.depths;
        text.push('\n');
        for (what, histogram) in [
            ("requests above a request", &depths.requests),
            ("hops between services above it", &depths.hops),
            ("calls of a request", &depths.calls),
            ("failed requests above a failure's origin", &depths.error_chains),
        ] {
            let _ = writeln!(text, "{what}: {}", quantiles(histogram));
        }
    }
    text
}

fn headline(report: &Report) -> String {
    let summary = &report.summary;
    let mut line = format!(
        "{} traces, {} with an error; {} requests of {} services, {} failed; {} edges.",
        summary.traces,
        summary.traces_with_error,
        summary.requests,
        summary.services,
        summary.failed_requests,
        summary.edges,
    );
    if summary.unnamed_calls > 0 {
        let _ = write!(
            line,
            "\n{} calls go to callees without spans and without names, and are in no edge.",
            summary.unnamed_calls
        );
    }
    line
}

fn edges(report: &Report, wide: bool) -> Table {
    let mut table = new_table();
    let mut header = vec![Cell::new("caller"), Cell::new("callee")];
    header.extend(["calls", "failures", "both", "P"].map(number));
    if wide {
        header.extend(["P per request", "k of n", "interval"].map(number));
    }
    header.extend(["raw class", "class"].map(Cell::new));
    if wide {
        header.push(Cell::new("rule"));
    }
    table.set_header(header);
    // What failed is what people look for.
    let mut edges: Vec<&Edge> = report.edges.iter().collect();
    edges.sort_by_key(|edge| Reverse((edge.failures, edge.both)));
    for edge in edges {
        let mut row = vec![Cell::new(&edge.caller), Cell::new(&edge.callee)];
        row.extend([edge.calls, edge.failures, edge.both].map(number));
        row.push(number(ratio(edge.p())));
        if wide {
            row.push(number(ratio(edge.p_per_request())));
            row.push(number(format!("{:.0} of {:.0}", edge.measured.k, edge.measured.n)));
            let interval = |(low, high)| format!("{low:.2} to {high:.2}");
            row.push(number(edge.interval().map_or_else(String::new, interval)));
        }
        row.extend([edge.raw_class(), edge.class()].map(Cell::new));
        if wide {
            let mute = edge.mute && edge.failures > 0;
            let rule = if mute { "caller-mute" } else { edge.measured.rule().as_str() };
            row.push(Cell::new(rule));
        }
        table.add_row(row);
    }
    table
}

fn claims(report: &Report) -> Table {
    let mut table = new_table();
    let mut header = vec![Cell::new("service")];
    header.extend(
        ["failed", "claimed", "not claimed", "claimed if databases are unseen"].map(number),
    );
    table.set_header(header);
    for claims in &report.claims {
        let mut row = vec![Cell::new(&claims.service)];
        let counts = [
            claims.failed,
            claims.claimed,
            claims.unclaimed,
            claims.claimed_if_databases_untracked,
        ];
        row.extend(counts.map(number));
        table.add_row(row);
    }
    table
}

/// The middle, the ninth tenth and the most of what was counted.
fn quantiles(histogram: &Histogram) -> String {
    let all: u64 = histogram.values().sum();
    let at = |share: f64| {
        let mut seen = 0;
        let found = histogram.iter().find(|(_, count)| {
            seen += **count;
            seen as f64 >= all as f64 * share
        });
        found.map_or(0, |(value, _)| *value)
    };
    match histogram.keys().next_back() {
        Some(most) => format!("median {}, 90 % up to {}, most {most}", at(0.5), at(0.9)),
        None => "none".to_owned(),
    }
}

fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"))
}

fn number(value: impl ToString) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}
