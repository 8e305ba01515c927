//! The figures for people: one screen.

use std::fmt::Write;

use super::figures::{Figures, Hop, Why};
use crate::table;

pub(crate) fn render(figures: &Figures) -> String {
    let mut text = String::new();
    let Figures { source, age_seconds, window_seconds, .. } = figures;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "from {source}, {age_seconds:.0} s old, counted over {window_seconds:.0} s; {:.1} retries suppressed per second\n",
        figures.suppressed_per_second
    );
    if figures.culprits.is_empty() {
        text.push_str("No service claims an error as its own, and none is silent.\n");
    } else {
        text.push_str(&table::render(
            ["CULPRIT", "BECAUSE", ">ERRORS/S", ">FIRST SEEN", ">AGE"],
            figures.culprits.iter().map(|it| {
                let why = match it.why {
                    Why::OwnClaims => "claims errors as its own",
                    Why::Silent => "callers fail on it; it is down, or has no Onus",
                };
                let first = it.first_seen_seconds.map_or_else(
                    || "-".to_owned(),
                    |seconds| format!("{} ago", table::age(seconds as u64)),
                );
                [
                    it.service.clone(),
                    why.to_owned(),
                    format!("{:.1}", it.errors_per_second),
                    first,
                    age(it.age_seconds),
                ]
            }),
        ));
    }
    section(&mut text, "Load on the way there", hops(&figures.path));
    section(&mut text, "Retry layers that multiply", hops(&figures.multiplying));
    let budgets = figures.empty_budgets.iter().map(|it| {
        [
            it.caller.clone(),
            it.callee.clone(),
            format!("{:.1}", it.denied_per_second),
            age(it.age_seconds),
        ]
    });
    section(
        &mut text,
        "Empty retry budgets",
        table_of(["CALLER", "CALLEE", ">DENIED/S", ">AGE"], budgets),
    );
    let switched = figures
        .switched
        .iter()
        .map(|it| [it.service.clone(), it.mode.clone(), table::age(it.shield_left_seconds)]);
    section(&mut text, "Switches", table_of(["SERVICE", "MODE", ">SHIELD FOR"], switched));
    for what in &figures.missing {
        let _ = writeln!(text, "\nNot in these figures: {what}");
    }
    text
}

fn section(text: &mut String, title: &str, table: Option<String>) {
    if let Some(table) = table {
        let _ = write!(text, "\n{title}:\n{table}");
    }
}

fn table_of<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Option<String> {
    let mut rows = rows.peekable();
    rows.peek()?;
    Some(table::render(header, rows))
}

/// How old counts are.
fn age(seconds: f64) -> String {
    table::age(seconds.round() as u64)
}

fn hops(hops: &[Hop]) -> Option<String> {
    let rows = hops.iter().map(|hop| {
        [
            hop.caller.clone(),
            hop.callee.clone(),
            format!("{:.2}", hop.factor),
            format!("{:.2}", hop.from_root),
            format!("{:.1}", hop.attempts_per_second),
            age(hop.age_seconds),
            if hop.foreign { "by a layer nobody declared".to_owned() } else { String::new() },
        ]
    });
    table_of(["CALLER", "CALLEE", ">FACTOR", ">FROM ROOT", ">ATTEMPTS/S", ">AGE", ""], rows)
}
