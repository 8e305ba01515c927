//! Reads a PromQL store: Prometheus, Thanos, Mimir or VictoriaMetrics.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use onus_analysis::{SERIES, Takes};
use onus_api::{EdgeNow, SCHEMA_VERSION, ServiceNow, Snapshot};
use onus_promql::{Client, Endpoint, Limits};

use crate::cli::NowOptions;

/// The window of the figures; at least four scrapes of 15 s lie in it.
const WINDOW_SECONDS: f64 = 60.0;

/// How the mesh is, by what agents are scraped for.
pub(crate) async fn snapshot(store: &str, options: &NowOptions) -> anyhow::Result<Snapshot> {
    let mut client = Client::new(Endpoint::new(store)?, Limits::default());
    if let Some(token) = &options.promql_token {
        client = client.token(token)?;
    }
    if let Some(authorities) = &options.promql_ca {
        client = client.authorities(authorities.clone());
    }
    let mut edges: BTreeMap<(String, String), EdgeNow> = BTreeMap::new();
    let mut services: BTreeMap<String, ServiceNow> = BTreeMap::new();
    let mut at = 0_u64;
    for series in SERIES.iter().filter(|series| SHOWN.contains(&series.metric)) {
        let query = match series.takes {
            Takes::Edge(_) => series.rose(&["caller", "callee"], "", "1m"),
            Takes::Procedure([service, _], _) => series.rose(&[service], "", "1m"),
        };
        let answer =
            client.ask(&query, None).await.with_context(|| format!("ask for {}", series.metric))?;
        for sample in &answer.samples {
            at = at.max((sample.at * 1000.0) as u64);
            let count = if sample.value.is_finite() { sample.value.round() as u64 } else { 0 };
            let label = |name: &str| sample.label(name).to_owned();
            match series.takes {
                Takes::Edge(take) => {
                    let edge = edges.entry((label("caller"), label("callee"))).or_default();
                    take(&mut edge.counts, sample, count);
                }
                Takes::Procedure([service, _], take) => {
                    let service = services.entry(label(service)).or_default();
                    take(&mut service.counts, sample, count);
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
        missing: MISSING.map(str::to_owned).into(),
        elsewhere: Vec::new(),
    })
}

/// The counters that the first minute of an incident needs.
const SHOWN: [&str; 5] = [
    "onus_calls_total",
    "onus_retries_total",
    "onus_retries_not_made_total",
    "onus_requests_total",
    "onus_claims_total",
];

/// What is not asked for in a hurry.
const MISSING: [&str; 2] = [
    "budgets, foreign retries, modes and shields: `onus now` does not ask a store for them",
    "since when: a store tells what rose in the last minute",
];
