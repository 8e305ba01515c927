//! The storms, for people.

use std::fmt::Write;

use comfy_table::{Cell, Table};
use onus_graph::{Change, Outlook, Reading, Storm, StormSize};

use super::{ALL, Radius};
use crate::table::{lined, number};

/// The largest storms and what would lower the largest of all; if `wide`, all storms and their ways.
pub(crate) fn render(radius: &Radius, wide: bool) -> String {
    let mut text = assumptions(radius);
    let (shown, more) = radius.most(if wide { ALL } else { SHOWN });
    // Writing to a string cannot fail.
    let _ = write!(text, "\n\n{}\n", entries(radius, shown, wide));
    if more > 0 {
        let _ = writeln!(
            text,
            "{more} more entries with smaller storms{}",
            if wide { "" } else { ": -o wide" }
        );
    }
    let worst = radius.worst();
    let storm = radius.without.below(worst.entry);
    if let Some((now, with)) = Outlook::mean_radii(&radius.outlooks) {
        let _ = writeln!(
            text,
            "\nMean radius over {} entries: {now:.1}, with ownership {with:.1}.",
            radius.outlooks.len()
        );
    }
    let name = radius.mesh.name(worst.entry);
    let _ = writeln!(text, "The longest way below {name}: {}.", way(radius, &storm));
    if !storm.unbounded_through.is_empty() {
        let _ = writeln!(
            text,
            "Calls lead round in circles through {}: there is no bound, and each service in them \
             counts once.",
            named(radius, &storm)
        );
    }
    let _ = writeln!(
        text,
        "\nWhat would change the storm below {name}:\n\n{}\n\nAn overloaded service recovers by itself while its utilisation is below 1 / amplification: \
         {}, with ownership {}.\nOne service fails, for good, and is seen to; several at once, and \
         calls that hang, exceed these figures.",
        changes(radius, worst),
        utilisation(&worst.without),
        utilisation(&worst.with)
    );
    text
}

fn assumptions(radius: &Radius) -> String {
    let assumed = &radius.assumed;
    let edges = radius.mesh.graph().edges().count();
    let mut text = format!("How far a storm would reach over {edges} edges. ");
    // Writing to a string cannot fail.
    let _ = match edges - assumed.on_edges {
        0 => write!(text, "{} attempts of a failing call are assumed", assumed.attempts),
        seen => write!(
            text,
            "{} attempts of a failing call are assumed where dumps do not show them, as they do on \
             {seen} edges",
            assumed.attempts
        ),
    };
    text.push_str(" (--attempts).");
    text.push_str(match assumed.reading {
        Reading::Proven => " A storm ends where a caller is proven to survive.",
        Reading::Calls => " A storm ends where the raw class of calls is fail-open.",
        Reading::Requests => " A storm ends where the raw class of requests is fail-open.",
    });
    if assumed.to_themselves > 0 {
        let _ =
            write!(text, "\n{} edges of a service to itself are left out.", assumed.to_themselves);
    }
    text
}

fn entries(radius: &Radius, outlooks: &[Outlook], wide: bool) -> Table {
    let mut table = lined();
    let mut header = vec![Cell::new("entry")];
    header.extend(["radius", "with ownership", "amplification", "with ownership"].map(number));
    if wide {
        header.push(number("reach"));
        header.push(Cell::new("longest way"));
    }
    table.set_header(header);
    for outlook in outlooks {
        let Outlook { entry, without, with } = outlook;
        let mut row = vec![Cell::new(radius.mesh.name(*entry))];
        row.extend([without.radius, with.radius].map(number));
        row.extend([without, with].map(|storm| number(amplification(storm))));
        if wide {
            row.push(number(without.reach));
            row.push(Cell::new(way(radius, &radius.without.below(*entry))));
        }
        table.add_row(row);
    }
    table
}

fn changes(radius: &Radius, worst: &Outlook) -> Table {
    let lower = radius.lower();
    let mut table = lined();
    let mut header = vec![Cell::new("change")];
    header.extend(["radius", "amplification"].map(number));
    table.set_header(header);
    let mut add = |what: String, radius: u32, times: String| {
        table.add_row(vec![Cell::new(what), number(radius), number(times)]);
    };
    add("none".to_owned(), worst.without.radius, amplification(&worst.without));
    for advice in lower.without.iter().take(FEW) {
        add(change(radius, advice.change, ""), advice.radius, times(advice.amplification));
    }
    add("ownership".to_owned(), worst.with.radius, amplification(&worst.with));
    for advice in lower.with.iter().take(FEW).chain(lower.needed.iter().take(FEW)) {
        let what = change(radius, advice.change, "ownership, ");
        add(what, advice.radius, times(advice.amplification));
    }
    table
}

fn change(radius: &Radius, change: Change, before: &str) -> String {
    let name = |service| radius.mesh.name(service);
    match change {
        Change::Cover(service) => format!("{before}also in {}", name(service)),
        Change::LeaveOut(service) => format!("{before}but no Onus in {}", name(service)),
        Change::Learn(caller, callee) => {
            format!("{before}{} learns that {} takes it down", name(caller), name(callee))
        }
        Change::Budget(caller, callee) => {
            format!("{before}a retry budget for {} → {}", name(caller), name(callee))
        }
    }
}

/// The services on the way of a storm; of a long one the ends.
fn way(radius: &Radius, storm: &Storm) -> String {
    let names = radius.names(&storm.path);
    match names.len().checked_sub(2 * FEW) {
        None | Some(0) => names.join(" → "),
        Some(between) => format!(
            "{} → ({between} more) → {}",
            names[..FEW].join(" → "),
            names[names.len() - FEW..].join(" → ")
        ),
    }
}

fn named(radius: &Radius, storm: &Storm) -> String {
    let names = radius.names(&storm.unbounded_through);
    match names.len().checked_sub(FEW) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..FEW].join(", ")),
    }
}

fn amplification(storm: &StormSize) -> String {
    if storm.is_bounded { times(storm.amplification) } else { "no bound".to_owned() }
}

/// Below which share of its capacity a service recovers.
fn utilisation(storm: &StormSize) -> String {
    match storm.is_bounded {
        true => format!("{:.0} %", 100.0 / storm.amplification),
        false => "at none".to_owned(),
    }
}

fn times(amplification: f64) -> String {
    if amplification < 1e6 { format!("{amplification}x") } else { format!("{amplification:.0e}x") }
}

/// Entries that are shown unless all are.
const SHOWN: usize = 10;

/// Enough to choose from.
const FEW: usize = 5;
