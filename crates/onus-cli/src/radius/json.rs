//! The storms, for tools.

use onus_graph::{Advice, Change, Outlook, Reading, Storm};
use serde::Serialize;

use super::{ALL, Radius};

/// Everything about the storms of a graph.
#[derive(Serialize)]
pub(crate) struct RadiusEntry<'r> {
    assumed: AssumedEntry,
    mean_radius: MeanEntry,
    entries: Vec<OutlookEntry<'r>>,
    /// Entries with smaller storms, which have no room.
    more_entries: usize,
    lower: LowerEntry<'r>,
}

#[derive(Serialize)]
struct AssumedEntry {
    attempts: u32,
    on_edges: usize,
    reading: &'static str,
    edges_to_themselves: usize,
}

#[derive(Serialize)]
struct MeanEntry {
    now: f64,
    with_ownership: f64,
}

#[derive(Serialize)]
struct OutlookEntry<'r> {
    entry: &'r str,
    now: StormEntry<'r>,
    with_ownership: StormEntry<'r>,
}

#[derive(Serialize)]
struct StormEntry<'r> {
    radius: u32,
    /// None where it is more than a number can hold.
    amplification: Option<f64>,
    reach: u32,
    path: Vec<&'r str>,
    unbounded_through: Vec<&'r str>,
}

#[derive(Serialize)]
struct LowerEntry<'r> {
    entry: &'r str,
    now: Vec<ChangeEntry<'r>>,
    with_ownership: Vec<ChangeEntry<'r>>,
    most_needed: Vec<ChangeEntry<'r>>,
}

#[derive(Serialize)]
struct ChangeEntry<'r> {
    change: &'static str,
    /// One service, or the caller and the callee.
    services: Vec<&'r str>,
    radius: u32,
    amplification: Option<f64>,
}

/// The storms of all entries.
pub(crate) fn entry(radius: &Radius) -> RadiusEntry<'_> {
    let (now, with_ownership) = Outlook::mean_radii(&radius.outlooks).unwrap_or_default();
    let outlook = |it: &Outlook| OutlookEntry {
        entry: radius.mesh.name(it.entry),
        now: storm(radius, &radius.without.below(it.entry)),
        with_ownership: storm(radius, &radius.with.below(it.entry)),
    };
    let (entries, more_entries) = radius.most(ALL);
    let lower = radius.lower();
    let changes = |advice: &[Advice]| advice.iter().map(|it| change(radius, it)).collect();
    RadiusEntry {
        assumed: AssumedEntry {
            attempts: radius.assumed.attempts,
            on_edges: radius.assumed.on_edges,
            reading: match radius.assumed.reading {
                Reading::Proven => "proven",
                Reading::Calls => "calls",
                Reading::Requests => "requests",
            },
            edges_to_themselves: radius.assumed.to_themselves,
        },
        mean_radius: MeanEntry { now, with_ownership },
        entries: entries.iter().map(outlook).collect(),
        more_entries,
        lower: LowerEntry {
            entry: radius.mesh.name(radius.worst().entry),
            now: changes(&lower.without),
            with_ownership: changes(&lower.with),
            most_needed: changes(&lower.needed),
        },
    }
}

fn storm<'r>(radius: &'r Radius, storm: &Storm) -> StormEntry<'r> {
    StormEntry {
        radius: storm.radius,
        amplification: finite(storm.amplification),
        reach: storm.reach,
        path: radius.names(&storm.path),
        unbounded_through: radius.names(&storm.unbounded_through),
    }
}

fn change<'r>(radius: &'r Radius, advice: &Advice) -> ChangeEntry<'r> {
    let (change, services) = match advice.change {
        Change::Cover(service) => ("cover", vec![service]),
        Change::LeaveOut(service) => ("leave-out", vec![service]),
        Change::Learn(caller, callee) => ("learn", vec![caller, callee]),
        Change::Budget(caller, callee) => ("budget", vec![caller, callee]),
    };
    ChangeEntry {
        change,
        services: radius.names(&services),
        radius: advice.radius,
        amplification: finite(advice.amplification),
    }
}

fn finite(amplification: f64) -> Option<f64> {
    amplification.is_finite().then_some(amplification)
}
