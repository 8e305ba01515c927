//! `onus overrides`: the classes of edges that operators say.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onus_analysis::read_overrides;
use onus_api::{
    Orders, Override, OverrideSource, OverridesPlan, OverridesRequest, Range, ReplayedEdge,
};
use serde_json::json;

use crate::analysis::{Client, block_on, json, print};
use crate::cli::{Output, OverridesAt, OverridesCommand, OverridesOptions};
use crate::exit::Refused;
use crate::table::{age, render};

pub(crate) fn run(options: &OverridesOptions) -> anyhow::Result<()> {
    let (file, dry_run, source, at) = match &options.command {
        OverridesCommand::List { at } => return list(at),
        OverridesCommand::Drop { id, at } => return drop_one(id, at),
        OverridesCommand::Diff { file, watched: true, at } => {
            (file, true, OverrideSource::File, at)
        }
        OverridesCommand::Diff { file, watched: false, at } => {
            (file, true, OverrideSource::Api, at)
        }
        OverridesCommand::Apply { file, dry_run, at } => (file, *dry_run, OverrideSource::Api, at),
    };
    let overrides = read_overrides(file).map_err(|error| Refused(error.with_causes()))?;
    let client = Client::new(&at.server)?;
    let request = OverridesRequest { overrides, dry_run, source };
    let plan: OverridesPlan = block_on(client.post("/api/v1/overrides/apply", &request))?;
    match at.output {
        Output::Table => print(&text(&plan)),
        Output::Json => print(&json(&plan)?),
    }
}

fn drop_one(id: &str, at: &OverridesAt) -> anyhow::Result<()> {
    let client = Client::new(&at.server)?;
    let named = json!({ "id": id });
    let left: Orders = block_on(client.post("/api/v1/overrides/drop", &named))?;
    match at.output {
        Output::Table => print("the override is dropped; agents follow within 15 s\n"),
        Output::Json => print(&json(&left)?),
    }
}

fn list(at: &OverridesAt) -> anyhow::Result<()> {
    let client = Client::new(&at.server)?;
    let orders: Orders = block_on(client.get("/api/v1/orders", &[]))?;
    if at.output == Output::Json {
        return print(&json(&orders)?);
    }
    let header = ["ID", "EDGES", "CLASS", "ENDS IN", "OWNER", "TICKET", "SOURCE", "REASON"];
    let rows = orders.overrides.iter().map(|it| {
        let source = it.source.as_str().to_owned();
        let (owner, ticket, reason) = (it.owner.clone(), it.ticket.clone(), it.reason.clone());
        let class = it.class.as_str().to_owned();
        [it.id.clone(), it.subject(), class, ends_in(it), owner, ticket, source, reason]
    });
    print(&render(header, rows))
}

/// A plan for people.
fn text(plan: &OverridesPlan) -> String {
    let mut text = String::new();
    for change in &plan.changes {
        let (sign, it) = match (&change.before, &change.after) {
            (None, Some(after)) => ('+', after),
            (Some(_), Some(after)) if change.differs => ('~', after),
            (Some(_), Some(after)) => ('=', after),
            (Some(before), None) => ('-', before),
            (None, None) => continue,
        };
        let said = |it: &Override| format!("{}, ends in {}", it.class.as_str(), ends_in(it));
        // Writing to a string cannot fail.
        let _ = write!(text, "{sign} {}: {}", it.subject(), said(it));
        if let (Some(before), '~') = (&change.before, sign) {
            let _ = write!(text, " (was {})", said(before));
        }
        text.push('\n');
    }
    let edges = plan.edges_changed;
    let _ = writeln!(
        text,
        "\n{edges} {} another class.",
        if edges == 1 { "edge gets" } else { "edges get" }
    );
    if edges > 0 {
        let header = ["EDGE", "CLASS", ">FAILED", ">CLAIMED", ">UNCLAIMED", ">RETRIES"];
        text += &render(header, plan.edges.iter().map(row));
        let _ = writeln!(
            text,
            "\nIn the last hour {} errors would have said that a retry is open, and {} that none is;\n\
             enforcing callers would have made up to {} retries more, and up to {} fewer.",
            span(plan.claimed),
            span(plan.unclaimed),
            plan.retried,
            plan.suppressed,
        );
    }
    let done =
        if plan.applied { "They hold; agents follow within 15 s." } else { "Nothing is set." };
    let _ = writeln!(text, "{done}");
    text
}

fn row(edge: &ReplayedEdge) -> [String; 6] {
    let ReplayedEdge { caller, caller_procedure, callee, procedure, .. } = edge;
    [
        format!("{caller} {caller_procedure} \u{2192} {callee} {procedure}"),
        format!("{} \u{2192} {}", edge.before.as_str(), edge.after.as_str()),
        edge.failures.to_string(),
        span(edge.claimed),
        span(edge.unclaimed),
        match (edge.retried, edge.suppressed) {
            (0, 0) => "0".to_owned(),
            (more, 0) => format!("+{more}"),
            (_, fewer) => format!("-{fewer}"),
        },
    ]
}

fn span(Range { least, most }: Range) -> String {
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

#[expect(clippy::disallowed_methods, reason = "people are told how much is left")]
fn ends_in(it: &Override) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    age(Duration::from_millis(it.expires).saturating_sub(now).as_secs())
}
