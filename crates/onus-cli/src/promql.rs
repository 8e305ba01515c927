//! Reads a PromQL store: Prometheus, Thanos, Mimir or VictoriaMetrics.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use onus_api::{EdgeNow, SCHEMA_VERSION, ServiceNow, Snapshot};
use onus_promql::{Client, Endpoint, Limits, Sample};

/// The window of the figures; at least four scrapes of 15 s lie in it.
const WINDOW_SECONDS: f64 = 60.0;

/// How the mesh is, by what agents are scraped for.
///
/// `increase` before `sum`: a sum over processes falls when one of them restarts, and a store takes
/// that for a counter that starts anew.
pub(crate) async fn snapshot(store: &str, token: Option<&str>) -> anyhow::Result<Snapshot> {
    let mut client = Client::new(Endpoint::new(store)?, Limits::default());
    if let Some(token) = token {
        client = client.token(token)?;
    }
    let mut edges: BTreeMap<(String, String), EdgeNow> = BTreeMap::new();
    let mut services: BTreeMap<String, ServiceNow> = BTreeMap::new();
    let mut at = 0_u64;
    for (metric, by, takes) in QUERIES {
        let query = format!("sum by ({by}) (increase({metric}[1m]))");
        let answer = client.ask(&query, None).await.with_context(|| format!("ask for {metric}"))?;
        for series in &answer.samples {
            at = at.max((series.at * 1000.0) as u64);
            let count = if series.value.is_finite() { series.value.round() as u64 } else { 0 };
            let label = |name: &str| series.label(name).to_owned();
            match takes {
                Takes::Edge(place) => {
                    let edge = edges.entry((label("caller"), label("callee"))).or_default();
                    place(edge, series, count);
                }
                Takes::Service(place) => {
                    place(services.entry(label("service")).or_default(), series, count);
                }
            }
        }
    }
    if edges.is_empty() && services.is_empty() {
        bail!(
            "find series of Onus: the store has none of onus_calls_total and onus_requests_total"
        );
    }
    let named = |((caller, callee), edge)| EdgeNow { caller, callee, ..edge };
    Ok(Snapshot {
        schema_version: SCHEMA_VERSION,
        at,
        seconds: WINDOW_SECONDS,
        edges: edges.into_iter().map(named).collect(),
        services: services
            .into_iter()
            .map(|(service, it)| ServiceNow { service, seen: at, ..it })
            .collect(),
    })
}

/// Where a series goes.
enum Takes {
    Edge(fn(&mut EdgeNow, &Sample, u64)),
    Service(fn(&mut ServiceNow, &Sample, u64)),
}

/// Metrics of agents, the labels that are kept, and where the series go.
const QUERIES: [(&str, &str, Takes); 5] = [
    (
        "onus_calls_total",
        "caller,callee,outcome",
        Takes::Edge(|edge, series, count| {
            let counts = &mut edge.counts;
            match series.label("outcome") {
                "ok" => counts.calls_ok += count,
                "error" => counts.calls_failed += count,
                _ => counts.calls_abandoned += count,
            }
        }),
    ),
    (
        "onus_retries_total",
        "caller,callee,verdict",
        Takes::Edge(|edge, series, count| match series.label("verdict") {
            "made" => edge.counts.retries += count,
            _ => edge.counts.retries_ok += count,
        }),
    ),
    (
        "onus_retries_not_made_total",
        "caller,callee,reason",
        Takes::Edge(|edge, series, count| match series.label("reason") {
            "suppressed" => edge.counts.suppressed += count,
            "budget-denied" => edge.counts.budget_denied += count,
            _ => {}
        }),
    ),
    (
        "onus_requests_total",
        "service,outcome",
        Takes::Service(|service, series, count| match series.label("outcome") {
            "ok" => service.counts.ok += count,
            "error" => service.counts.failed += count,
            _ => service.counts.cancelled += count,
        }),
    ),
    (
        "onus_claims_total",
        "service,reason",
        Takes::Service(|service, series, count| {
            if series.label("reason") == "own" {
                service.counts.claims_own += count;
            }
        }),
    ),
];
