//! `onus edges`: what is known of edges.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onus_api::{Class, EdgeFigures, EdgePage};
use onus_learn::{Z90, wilson};

use super::{block_on, json, nothing, tell, whole};
use crate::cli::{EdgesOptions, Output, Server, Span};
use crate::table;

pub(crate) fn run(options: &EdgesOptions) -> anyhow::Result<()> {
    let EdgesOptions { caller, callee, span, server, watch, output } = options;
    super::watch(*watch, *output, || {
        let page = block_on(all(server, caller.as_deref(), callee.as_deref(), span))?;
        Ok(match output {
            Output::Table => {
                tell(&page.missing);
                if page.edges.is_empty() {
                    nothing(if span.since.is_some() {
                        "no such call went wrong in that time"
                    } else {
                        "no such calls are known"
                    });
                }
                render(&page, span.since.is_some())
            }
            Output::Json => json(&page)?,
        })
    })
}

/// All pages of all analyses as one.
pub(crate) async fn all(
    server: &Server,
    caller: Option<&str>,
    callee: Option<&str>,
    span: &Span,
) -> anyhow::Result<EdgePage> {
    let window = window(span);
    whole(server, async |client| {
        let mut all = EdgePage::default();
        loop {
            let mut query = Vec::from([("limit", "10000")]);
            query.extend(caller.map(|caller| ("caller", caller)));
            query.extend(callee.map(|callee| ("callee", callee)));
            query.extend(window.iter().map(|(name, time)| (*name, time.as_str())));
            query.extend(all.next.as_deref().map(|next| ("after", next)));
            let page: EdgePage = client.get("/api/v1/edges", &query).await?;
            let edges = std::mem::take(&mut all.edges).into_iter().chain(page.edges).collect();
            all = EdgePage { edges, ..page };
            if all.next.is_none() {
                return Ok(all);
            }
        }
    })
    .await
}

/// The window as an analysis is asked for it, in milliseconds since 1970.
pub(crate) fn window(span: &Span) -> Vec<(&'static str, String)> {
    let Some(since) = span.since else { return Vec::new() };
    let to = now().saturating_sub(span.until.unwrap_or_default());
    let times = [("from", to.saturating_sub(since)), ("to", to)];
    times.map(|(name, time)| (name, time.as_millis().to_string())).into()
}

#[expect(clippy::disallowed_methods, reason = "people say how long ago")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// With a window the counts and the ratio are those of the window; the class is that of all time.
fn render(page: &EdgePage, windowed: bool) -> String {
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
        let counts = if windowed { &edge.recent } else { &edge.counts };
        let (ratio, interval) = match (windowed, counts.isolated()) {
            (false, _) => (edge.ratio, edge.interval),
            (true, 0) => (None, edge.interval),
            (true, n) => {
                let k = counts.alone_caller_failed as f64;
                (Some(k / n as f64), wilson(k, n as f64, Z90))
            }
        };
        [
            edge.caller.clone(),
            edge.caller_procedure.clone(),
            edge.callee.clone(),
            edge.procedure.clone(),
            counts.calls().to_string(),
            counts.failures().to_string(),
            counts.isolated().to_string(),
            counts.alone_caller_failed.to_string(),
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            shown(ratio, interval),
            class(edge),
            edge.by.clone(),
            table::age(edge.held_seconds),
        ]
    });
    table::render(header, rows)
}

fn shown(ratio: Option<f64>, (low, high): (f64, f64)) -> String {
    match ratio {
        None => "-".to_owned(),
        Some(_) => format!("{low:.2}-{high:.2}"),
    }
}

/// An edge that never failed is not known either, and people want to tell the two apart.
fn class(edge: &EdgeFigures) -> String {
    match edge.class {
        Class::Unknown => edge.measured.clone(),
        Class::FailClose | Class::FailOpen => edge.class.as_str().to_owned(),
    }
}
