//! The tables of `docs/why.md`, printed from the shipped scenarios.

use std::fmt::Write;

use onus_sim::simulate::{Outcome, Recovery};

use super::policies::play_shipped;
use crate::figures;

const SEEDS: u32 = 5;

/// A column: its head, and what an outcome has in it.
type Column = (&'static str, fn(&Outcome) -> String);

const LOAD: Column = ("load", |outcome| two_digits(outcome.load_factor.map(|load| load.mean)));

const OK: Column = ("ok %", |outcome| two_digits(Some(outcome.availability.mean * 100.0)));

const BAD_LOAD: Column = ("load of these keys", |outcome| {
    two_digits(outcome.bad_keys.and_then(|bad| bad.load_factor).map(|load| load.mean))
});

const RECOVERY: Column = ("seconds until it recovers", |outcome| match outcome.recovery {
    Some(Recovery { seconds: Some(seconds), .. }) => format!("{:.0}", seconds.mean),
    Some(Recovery { recovered: 0, .. }) => "never".to_owned(),
    Some(Recovery { recovered, .. }) => format!("in {recovered} of {} runs", outcome.runs),
    None => String::new(),
});

fn two_digits(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.2}"))
}

/// The columns that a scenario is about.
fn columns(scenario: &str) -> &'static [Column] {
    match scenario {
        "hot-shard" | "hang-hot-keys" => &[BAD_LOAD, LOAD],
        "overload" => &[LOAD, OK, RECOVERY],
        "chain" | "eager-client" => &[LOAD],
        _ => &[LOAD, OK],
    }
}

fn table(scenario: &str) -> String {
    let columns = columns(scenario);
    let heads: Vec<_> = columns.iter().map(|(head, _)| *head).collect();
    // Writing to a string cannot fail.
    let mut text = format!("| policy | {} |\n|---|", heads.join(" | "));
    text.push_str(&"---:|".repeat(columns.len()));
    text.push('\n');
    for outcome in &play_shipped(scenario, SEEDS).outcomes {
        let cells: Vec<_> = columns.iter().map(|(_, cell)| cell(outcome)).collect();
        let _ = writeln!(text, "| {} | {} |", outcome.policy, cells.join(" | "));
    }
    text
}

#[test]
fn why_has_the_figures_that_the_simulator_prints() {
    let tables = figures::keep("why.md", table);
    assert!(tables >= 8, "{tables} tables");
}
