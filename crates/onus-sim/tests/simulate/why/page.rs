//! The tables and charts of `docs/why.md`, printed from the shipped scenarios.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use onus_sim::simulate::{Experiment, Outcome, Recovery, charts};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/why.md");

/// Where its charts are, by scenario and kind: `overload-goodput.svg`.
const CHARTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/why");

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end -->";

/// That the page has the figures of this experiment, and the charts that it shows of it.
/// With `UPDATE_TABLES` it gets them first.
#[track_caller]
pub(super) fn check(experiment: &Experiment) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let update = env::var_os("UPDATE_TABLES").is_some();
    let name = &experiment.scenario;
    let text = fs::read_to_string(FILE).expect("docs/why.md can be read");
    let begin = format!("{BEGIN}{name} -->\n");
    let (before, rest) = text.split_once(&begin).expect("a place for the figures");
    let (found, after) = rest.split_once(END).expect("an end of the figures");
    let printed = table(experiment);
    if update {
        fs::write(FILE, [before, &begin, &printed, END, after].concat()).expect("it is written");
    } else {
        assert_eq!(found, printed, "docs/why.md, {name}: {RENEW}");
    }
    for chart in charts(experiment) {
        let file = format!("{name}-{}", chart.file);
        if !text.contains(&format!("](why/{file})")) {
            continue;
        }
        let path = format!("{CHARTS}/{file}");
        if update {
            fs::create_dir_all(CHARTS).expect("a folder for charts");
            fs::write(&path, &chart.svg).expect("a chart is written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == chart.svg, "{path} is not what the simulator draws: {RENEW}");
    }
}

const RENEW: &str = "run `UPDATE_TABLES=1 cargo test -p onus-sim why` and review what changes";

/// The scenarios of which the page has figures, and the charts that it shows.
pub(super) fn contents() -> (Vec<String>, Vec<String>) {
    let text = fs::read_to_string(FILE).expect("docs/why.md can be read");
    let after = |mark: &str, end: &str| {
        let parts = text.split(mark).skip(1);
        parts.filter_map(|part| Some(part.split_once(end)?.0.to_owned())).collect()
    };
    (after(BEGIN, " -->"), after("](why/", ")"))
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
