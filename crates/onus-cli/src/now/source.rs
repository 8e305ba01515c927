//! Where the figures come from: the analysis, a PromQL store, or the services themselves; the first
//! that answers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use onus_api::Snapshot;

use crate::analysis::{Client, whole};
use crate::cli::NowOptions;
use crate::promql;

/// Between two looks at services, which count since their start.
pub(crate) const PAUSE: Duration = Duration::from_secs(2);
/// A source that is down must not cost the minute that matters.
const PATIENCE: Duration = Duration::from_secs(3);

/// A snapshot, where it comes from, and how old it is.
pub(crate) async fn first(options: &NowOptions) -> anyhow::Result<(Snapshot, String, f64)> {
    let mut refusals = Vec::new();
    let analysis = &options.server.analysis;
    match from_analysis(options).await {
        Ok(snapshot) => {
            let age = age(&snapshot);
            return Ok((snapshot, format!("the analysis at {analysis}"), age));
        }
        Err(error) => refusals.push(format!("the analysis: {error:#}")),
    }
    if let Some(store) = &options.promql {
        match in_time(promql::snapshot(store, options)).await {
            Ok(snapshot) => {
                let age = age(&snapshot);
                return Ok((snapshot, format!("the store at {store}"), age));
            }
            Err(error) => refusals.push(format!("the store: {error:#}")),
        }
    }
    if !options.agents.is_empty() {
        match from_agents(options).await {
            Ok((snapshot, silent)) => {
                let count = options.agents.len() - silent.len();
                let silent = match silent.len() {
                    0 => String::new(),
                    _ => format!(" (silent: {})", silent.join(", ")),
                };
                return Ok((snapshot, format!("{count} agents{silent}"), 0.0));
            }
            Err(error) => refusals.push(format!("the agents: {error:#}")),
        }
    }
    bail!(
        "find a source: {}; name the admin addresses of services with --agents",
        refusals.join("; ")
    )
}

async fn from_analysis(options: &NowOptions) -> anyhow::Result<Snapshot> {
    whole(&options.server, async |client| in_time(client.get("/api/v1/now", &[])).await).await
}

/// The counts between two looks, of all agents that answer both times, and those that do not.
async fn from_agents(options: &NowOptions) -> anyhow::Result<(Snapshot, Vec<String>)> {
    let agents = &options.agents;
    let before = look(options).await;
    tokio::time::sleep(PAUSE).await;
    let after = look(options).await;
    let mut all: Option<Snapshot> = None;
    let mut silent = Vec::new();
    for ((agent, before), after) in agents.iter().zip(before).zip(after) {
        let (Ok(before), Ok(after)) = (before, after) else {
            silent.push(agent.clone());
            continue;
        };
        let counted = after.since(&before);
        all = Some(match all {
            None => counted,
            Some(all) => all.plus(counted),
        });
    }
    let all = all.ok_or_else(|| anyhow!("none of {} answers", agents.join(", ")))?;
    Ok((all, silent))
}

async fn look(options: &NowOptions) -> Vec<anyhow::Result<Snapshot>> {
    let mut looks = tokio::task::JoinSet::new();
    for (at, agent) in options.agents.iter().enumerate() {
        let client = Client::to(&options.server, agent);
        looks.spawn(async move {
            let snapshot = in_time(async { client?.get::<Snapshot>("/api/v1/now", &[]).await });
            (at, snapshot.await)
        });
    }
    let mut found = looks.join_all().await;
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, snapshot)| snapshot).collect()
}

async fn in_time<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let late = || format!("wait for longer than {} s", PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, work).await.with_context(late)?
}

/// By this machine's clock; one that is behind makes nothing newer than it is.
#[expect(clippy::disallowed_methods, reason = "people are told how old figures are")]
fn age(snapshot: &Snapshot) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs_f64() - snapshot.at as f64 / 1000.0).max(0.0)
}
