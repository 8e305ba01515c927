//! The tables and charts of `docs/why.md`, printed from the shipped scenarios.

use std::fmt::Write;

use onus_sim::simulate::{Experiment, Outcome, Recovery, charts};

use crate::pages;

const PAGE: &str = "why.md";

/// That the page has the figures of this experiment, and the charts that it shows of it.
#[track_caller]
pub(super) fn check(experiment: &Experiment) {
    let name = &experiment.scenario;
    pages::check_figures(PAGE, name, &table(experiment));
    let (_, shown) = contents();
    for chart in charts(experiment) {
        let file = format!("{name}-{}", chart.file);
        if shown.contains(&file) {
            pages::check_file(&format!("why/{file}"), &chart.svg);
        }
    }
}

/// The scenarios of which the page has figures, and the charts that it shows.
pub(super) fn contents() -> (Vec<String>, Vec<String>) {
    let text = pages::text(PAGE);
    let charts = text.split("](why/").skip(1);
    let charts = charts.filter_map(|part| Some(part.split_once(')')?.0.to_owned()));
    (pages::places(PAGE), charts.collect())
}

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

const HOPS: Column = ("hops", |outcome| outcome.value.unwrap_or_default().to_string());

const INSTANCES: Column = ("instances", HOPS.1);

const DIRECT: Column = ("stopped at the direct caller", |outcome| {
    outcome.stopped.map_or_else(String::new, |stopped| format!("{:.0}", stopped.direct))
});

const ALL: Column = ("stopped in all", |outcome| {
    outcome.stopped.map_or_else(String::new, |stopped| format!("{:.0}", stopped.all))
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
        "large-fleet" => &[INSTANCES, BAD_LOAD],
        "incident-2025-11-18" => &[HOPS, LOAD, DIRECT, ALL],
        _ => &[LOAD, OK],
    }
}

fn table(experiment: &Experiment) -> String {
    let columns = columns(&experiment.scenario);
    let heads: Vec<_> = columns.iter().map(|(head, _)| *head).collect();
    // Writing to a string cannot fail.
    let mut text = format!("| policy | {} |\n|---|", heads.join(" | "));
    text.push_str(&"---:|".repeat(columns.len()));
    text.push('\n');
    for outcome in &experiment.outcomes {
        let cells: Vec<_> = columns.iter().map(|(_, cell)| cell(outcome)).collect();
        let _ = writeln!(text, "| {} | {} |", outcome.policy, cells.join(" | "));
    }
    text
}
