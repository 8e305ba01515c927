//! The result for people.

use std::fmt::Write;

use comfy_table::{Cell, Table};
use onus_demo::{BadKeys, Demo, Node, PerNode, Policy, RetryPermission, Run};

use crate::table::{lined, number};

/// What is shown, the table, and below it what the client saw.
pub(crate) fn render(demo: &Demo, runs: &[Run]) -> String {
    let mut text = format!("{}\n\n{}\n\n", headline(demo), table(runs));
    if demo.bad_keys.is_some() {
        let table = table_of_bad_keys(demo, runs);
        let _ = write!(text, "Those of them with a bad key:\n\n{table}\n\n");
    }
    text.push_str("What the client saw:\n");
    let width = Policy::ALL.map(|policy| policy.title().chars().count()).into_iter().max();
    for run in runs {
        let title = run.policy.title();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {title:width$}  {}", seen(demo, run), width = width.unwrap_or(0));
    }
    text
}

fn headline(demo: &Demo) -> String {
    let chain = Node::ALL.map(Node::as_str).join(" \u{2192} ");
    let fault = if demo.hang {
        format!("{} never answers", demo.fail)
    } else if let Some(keys) = demo.bad_keys {
        format!("{} fails the {keys} % of them with a bad key", demo.fail)
    } else if demo.failure_rate < 1.0 {
        format!("{} fails {} % of its requests", demo.fail, demo.failure_rate * 100.0)
    } else {
        format!("{} fails every request", demo.fail)
    };
    let mut line = format!("{chain}: {} requests to A, {fault}", demo.requests);
    for (node, what) in [
        (demo.context_loss, "loses the context of its requests"),
        (demo.no_retries, "does not retry"),
        (demo.no_claims, "has no Onus"),
        (demo.shield, "has a shield"),
    ] {
        if let Some(node) = node {
            let _ = write!(line, ", {node} {what}");
        }
    }
    if demo.observe {
        line.push_str(", ownership only observes");
    }
    line + ".\nRequests handled, counted in the services:"
}

fn table(runs: &[Run]) -> Table {
    let mut table = table_with("client errors");
    for run in runs {
        table.add_row(measured(run, &run.handled, run.report.client_errors));
        table.add_row(formula(run.expected.as_ref()));
    }
    table
}

fn table_of_bad_keys(demo: &Demo, runs: &[Run]) -> Table {
    let mut table = table_with(&format!("{} for one at A", demo.fail));
    for run in runs {
        let Some(BadKeys { handled, expected }) = &run.bad_keys else { continue };
        let growth = handled[demo.fail] as f64 / handled[Node::A].max(1) as f64;
        table.add_row(measured(run, handled, format!("{growth:.1}")));
        table.add_row(formula(expected.as_ref()));
    }
    table
}

fn table_with(last_column: &str) -> Table {
    let mut table = lined();
    let mut header = vec![Cell::new("policy"), Cell::new("")];
    header.extend(Node::ALL.map(number));
    header.push(number(last_column));
    table.set_header(header);
    table
}

fn measured(run: &Run, handled: &PerNode<u64>, last: impl ToString) -> Vec<Cell> {
    let mut row = vec![Cell::new(run.policy.title()), Cell::new("measured")];
    row.extend(handled.iter().map(|(_, count)| number(count)));
    row.push(number(last));
    row
}

fn formula(expected: Option<&PerNode<u64>>) -> Vec<Cell> {
    let mut row = vec![Cell::new(""), Cell::new("formula")];
    row.extend(Node::ALL.map(|node| match expected {
        Some(expected) => number(expected[node]),
        None => number("-"),
    }));
    row.push(Cell::new(""));
    row
}

fn seen(demo: &Demo, run: &Run) -> String {
    let Some((error, times)) = run.report.most_seen() else { return "no error".to_owned() };
    let mut text = error.to_string();
    if error.retry() == RetryPermission::Unsaid {
        let why = if run.policy.owns() { "no claim" } else { "no claim, ownership is off" };
        let _ = write!(text, " ({why})");
    }
    if times != demo.requests {
        let _ = write!(text, ", in {times} of {} requests", demo.requests);
    }
    text
}
