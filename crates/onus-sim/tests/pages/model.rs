//! The tables of `docs/model.md`.

use std::fmt::Write;

use onus_sim::model::{Check, Provisos, SLICES};

use crate::pages;
use crate::properties::FOUR;
use crate::rules::REJECTED;

#[test]
fn the_model_page_has_the_figures_of_four_nodes() {
    let tables = [("slices", slices()), ("properties", properties()), ("rejected", rejected())];
    for (name, printed) in &tables {
        pages::check_figures(PAGE, name, printed);
    }
    assert_eq!(pages::places(PAGE), tables.map(|(name, _)| name));
}

const PAGE: &str = "model.md";

fn slices() -> String {
    let mut text =
        "| slice | what varies | 4 nodes | traces | 5 nodes |\n|---|---|---:|---:|---:|\n"
            .to_owned();
    let five = Check::shipped(5, 1);
    for (slice, found) in SLICES.iter().zip(&FOUR.slices) {
        let counts = [found.configurations, found.traces, five.configurations(slice)];
        let [four, traces, five] = counts.map(grouped);
        let _ = writeln!(text, "| {} | {} | {four} | {traces} | {five} |", slice.name, slice.words);
    }
    text
}

fn properties() -> String {
    let mut text =
        "| property | what holds | provided that | traces |\n|---|---|---|---:|\n".to_owned();
    let coverage = Provisos::CORRELATED.and(Provisos::EVERYWHERE).and(Provisos::ENFORCING);
    let off = Provisos::SILENT_CLAIMS_OFF.and(Provisos::PROBES_OFF);
    for (property, found) in FOUR.as_stated() {
        let mut needs = property.needs;
        let mut provisos = Vec::new();
        for (group, words) in [(coverage, "full coverage"), (off, "silent-claims and probes off")] {
            if needs.include(group) {
                needs = needs.without(group);
                provisos.push(words);
            }
        }
        provisos.extend(needs.each().map(|(_, words)| words));
        let (provisos, traces) = (provisos.join("; "), grouped(found.traces));
        let _ =
            writeln!(text, "| {} | {} | {provisos} | {traces} |", property.name, property.words);
    }
    text
}

fn rejected() -> String {
    let mut text = "| rule | what it says | breaks | in slice | requests in the smallest trace |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for (rules, slice, property, requests) in REJECTED {
        let (name, words) = (rules.as_str(), rules.words());
        let _ = writeln!(text, "| {name} | {words} | {property} | {slice} | {requests} |");
    }
    text
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let breaks = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    let grouped = digits
        .char_indices()
        .flat_map(|(at, digit)| breaks(at).then_some(',').into_iter().chain([digit]));
    grouped.collect()
}
