//! `docs/decision-table.md`: the decisions as shipped, printed with don't-cares folded, so that a
//! changed rule shows as a changed row.

mod claims;
mod fold;
mod retries;

use std::path::Path;
use std::{env, fs};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/decision-table.md");

const HEAD: &str = "\
# Decision tables

Printed from the shipped decisions; regenerate with `UPDATE_TABLES=1 cargo test -p onus-conformance \
decision_table`. In each table the first row that matches decides; an empty cell stands for any \
value. The rows cover every combination of facts.
";

#[test]
fn decision_table() {
    let printed = [HEAD.to_owned(), retries::tables(), claims::tables()].join("\n");
    let file = Path::new(FILE);
    if env::var_os("UPDATE_TABLES").is_some() {
        fs::write(file, &printed).expect("docs/decision-table.md can be written");
    }
    let checked_in = fs::read_to_string(file).unwrap_or_default();
    if let Some(difference) = difference(&checked_in, &printed) {
        panic!(
            "docs/decision-table.md is not what the code decides:\n{difference}\
             run `UPDATE_TABLES=1 cargo test -p onus-conformance decision_table` and review the rows"
        );
    }
}

/// The lines that only one of the texts has.
fn difference(old: &str, new: &str) -> Option<String> {
    let only = |of: &str, other: &str, sign: char| -> String {
        let lines = of.lines().filter(|line| !other.lines().any(|known| known == *line));
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    (old != new).then(|| only(old, new, '-') + &only(new, old, '+'))
}
