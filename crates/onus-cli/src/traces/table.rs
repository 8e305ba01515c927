//! The result for people.

use std::cmp::Reverse;
use std::fmt::Write;

use comfy_table::{Cell, Table};
use onus_traces::{Edge, Histogram, Report};

use crate::radius::{self, Radius};
use crate::table::{lined, number};

/// What was read, the edges, and how far a storm would reach; if `wide`, with evidence, claims and
/// depth.
pub(crate) fn render(report: &Report, radius: Option<&Radius>, wide: bool) -> String {
    let mut parts = Vec::new();
    if report.summary.spans > 0 || radius.is_none() {
        // What failed is what people look for.
        let mut sorted: Vec<&Edge> = report.edges.iter().collect();
        sorted.sort_by_key(|edge| Reverse((edge.failures, edge.both)));
        let failing = sorted.iter().take_while(|edge| edge.failures > 0).count();
        let shown = if wide { sorted.len() } else { failing.max(FEW).min(sorted.len()) };
        let mut part = format!("{}\n\n{}\n", headline(report), edges(&sorted[..shown], wide));
        if shown < sorted.len() {
            let _ =
                writeln!(part, "{} more edges, never seen to fail: -o wide", sorted.len() - shown);
        }
        parts.push(part);
        if wide {
            parts.extend(claims(report));
            parts.push(depths(report));
        }
    }
    parts.extend(radius.map(|radius| radius::render(radius, wide)));
    parts.join("\n")
}

fn depths(report: &Report) -> String {
    let depths = &report.depths;
    let mut text = String::new();
    for (what, histogram) in [
        ("requests above a request", &depths.requests),
        ("hops between services above it", &depths.hops),
        ("calls of a request", &depths.calls),
        ("failed requests above a failure's origin", &depths.error_chains),
    ] {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what}: {}", quantiles(histogram));
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

fn edges(edges: &[&Edge], wide: bool) -> Table {
    let mut table = lined();
    let mut header = vec![Cell::new("caller"), Cell::new("callee")];
    header.extend(["calls", "failures", "both", "P"].map(number));
    if wide {
        header.extend(["attempts", "P per request", "k of n", "interval"].map(number));
    }
    header.extend(["raw class", "class"].map(Cell::new));
    if wide {
        header.push(Cell::new("rule"));
    }
    table.set_header(header);
    for edge in edges {
        let mut row = vec![Cell::new(&edge.caller), Cell::new(&edge.callee)];
        row.extend([edge.calls, edge.failures, edge.both].map(number));
        row.push(number(ratio(edge.p())));
        if wide {
            row.push(number(
                edge.attempts.map_or_else(String::new, |attempts| attempts.to_string()),
            ));
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

fn claims(report: &Report) -> Option<String> {
    if report.claims.is_empty() {
        return None;
    }
    let mut table = lined();
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
    Some(format!("Failed requests, by who would own them:\n\n{table}\n"))
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

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"))
}

/// Edges that fill a table though nothing failed on them.
const FEW: usize = 20;
