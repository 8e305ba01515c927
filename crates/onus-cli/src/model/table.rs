//! The result for people.

use std::fmt::Write;

use comfy_table::{Cell, Table, presets};
use onus_sim::model::{Check, Counterexample, Findings, Replay, Slice};

use crate::table::number;

/// What was checked, what held, and the smallest trace that breaks each property that did not.
pub(crate) fn render(check: &Check, found: &[(&Slice, Findings)], total: &Findings) -> String {
    let mut text = format!(
        "Every call tree up to {} nodes, rules: {}.\n\n{}\n\n{}\n",
        check.nodes,
        check.rules.as_str(),
        slices(found, total),
        properties(check, total),
    );
    for found in &total.properties {
        if let Some(smallest) = &found.smallest {
            text.push_str(&counterexample(smallest));
        }
    }
    text
}

/// One trace, as text and as a diagram.
pub(crate) fn replay(replay: &Replay) -> String {
    let mut text = replay.text();
    let broken = replay.broken();
    if !broken.is_empty() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "breaks: {}", broken.join(", "));
    }
    let _ = write!(text, "\n```mermaid\n{}```\n", replay.mermaid());
    text
}

fn counterexample(smallest: &Counterexample) -> String {
    let id = smallest.id();
    let trace = Replay::of(&id).map_or_else(String::new, |trace| replay(&trace));
    format!("\n{}: the smallest trace that breaks it is {id}\n\n{trace}", smallest.property)
}

fn slices(found: &[(&Slice, Findings)], total: &Findings) -> Table {
    let mut table = table_with(["slice", "configurations", "traces", "what varies"]);
    for (slice, findings) in found {
        let counts = [findings.configurations, findings.traces].map(grouped).map(number);
        let [configurations, traces] = counts;
        table.add_row([Cell::new(slice.name), configurations, traces, Cell::new(slice.words)]);
    }
    let [configurations, traces] = [total.configurations, total.traces].map(grouped).map(number);
    table.add_row([Cell::new("all"), configurations, traces, Cell::new("")]);
    table
}

fn properties(check: &Check, total: &Findings) -> Table {
    let mut table =
        table_with(["property", "traces", "violations", "in configurations", "what holds"]);
    for (property, found) in check.properties.iter().zip(&total.properties) {
        let counts =
            [found.traces, found.violations, found.configurations].map(grouped).map(number);
        let [traces, violations, configurations] = counts;
        let [name, words] = [property.name, property.words].map(Cell::new);
        table.add_row([name, traces, violations, configurations, words]);
    }
    table
}

pub(super) fn table_with<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_header(header);
    table
}

/// Digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
