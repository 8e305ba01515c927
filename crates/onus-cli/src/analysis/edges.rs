//! `onus edges`: what is known of edges.

use onus_api::{Class, EdgeFigures, EdgePage};

use super::{Client, block_on, json, print};
use crate::cli::{EdgesOptions, Output};
use crate::table;

pub(crate) fn run(options: &EdgesOptions) -> anyhow::Result<()> {
    let client = Client::new(&options.server)?;
    let page = block_on(all(&client, options.caller.as_deref(), options.callee.as_deref()))?;
    print(&match options.output {
        Output::Table => render(&page),
        Output::Json => json(&page)?,
    })
}

/// All pages as one.
pub(crate) async fn all(
    client: &Client,
    caller: Option<&str>,
    callee: Option<&str>,
) -> anyhow::Result<EdgePage> {
    let mut all = EdgePage::default();
    loop {
        let mut query = Vec::from([("limit", "10000")]);
        query.extend(caller.map(|caller| ("caller", caller)));
        query.extend(callee.map(|callee| ("callee", callee)));
        query.extend(all.next.as_deref().map(|next| ("after", next)));
        let page: EdgePage = client.get("/api/v1/edges", &query).await?;
        all.schema_version = page.schema_version;
        all.edges.extend(page.edges);
        all.next = page.next;
        if all.next.is_none() {
            return Ok(all);
        }
    }
}

fn render(page: &EdgePage) -> String {
    let header = [
        "CALLER",
        "SERVES",
        "CALLEE",
        "METHOD",
        ">CALLS",
        ">FAILED",
        ">ALONE",
        ">BOTH",
        ">P",
        "90 % INTERVAL",
        "CLASS",
        "BY",
        "FOR",
    ];
    let rows = page.edges.iter().map(|edge| {
        let counts = &edge.counts;
        [
            edge.caller.clone(),
            edge.caller_procedure.clone(),
            edge.callee.clone(),
            edge.procedure.clone(),
            counts.calls().to_string(),
            counts.failures().to_string(),
            counts.isolated().to_string(),
            counts.alone_caller_failed.to_string(),
            edge.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            interval(edge),
            class(edge),
            edge.by.clone(),
            table::age(edge.held_seconds),
        ]
    });
    table::render(header, rows)
}

fn interval(edge: &EdgeFigures) -> String {
    match edge.ratio {
        None => "-".to_owned(),
        Some(_) => format!("{:.2}-{:.2}", edge.interval.0, edge.interval.1),
    }
}

/// An edge that never failed is not known either, and people want to tell the two apart.
fn class(edge: &EdgeFigures) -> String {
    match edge.class {
        Class::Unknown => edge.measured.clone(),
        Class::FailClose | Class::FailOpen => edge.class.as_str().to_owned(),
    }
}
