//! Switches thrown at processes themselves, for when the analysis is down.

use std::time::Duration;

use anyhow::{Context, bail};
use onus_api::{Snapshot, SwitchRequest};
use tokio::task::JoinSet;

use crate::analysis::{Client, Refusal, print};
use crate::cli::LeverOptions;

/// A process that does not answer must not keep whoever pulls the lever.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a process made of it.
enum Switched {
    Done,
    /// It is of another service.
    NotMeant,
    Failed(String),
}

/// All processes at once: that one cannot be reached does not keep it from the others.
pub(super) async fn switch(
    lever: &LeverOptions,
    request: &SwitchRequest,
    done: &str,
) -> anyhow::Result<()> {
    let mut thrown = JoinSet::new();
    for agent in &lever.agents {
        let (client, agent) = (Client::to(&lever.server, agent), agent.clone());
        let request = request.clone();
        thrown.spawn(async move { one(client, &agent, &request).await });
    }
    let (mut count, mut others, mut failed) = (0, 0, Vec::new());
    for switched in thrown.join_all().await {
        match switched {
            Switched::Done => count += 1,
            Switched::NotMeant => others += 1,
            Switched::Failed(why) => failed.push(why),
        }
    }
    let meant = lever.agents.len() - others;
    let service = request.service.as_deref().unwrap_or_default();
    if meant == 0 {
        bail!("find a process of {service}: all {others} are of other services");
    }
    let others = match others {
        0 => String::new(),
        _ => format!(" ({others} of other services were left alone)"),
    };
    print(&format!("{done} in {count} of {meant} processes{others}\n"))?;
    if failed.is_empty() {
        return Ok(());
    }
    failed.sort();
    bail!("switch {}", failed.join("; "))
}

async fn one(client: anyhow::Result<Client>, agent: &str, request: &SwitchRequest) -> Switched {
    let switched = async { client?.post::<Snapshot>("/api/v1/switch", request).await };
    let late = || format!("no answer within {} s", PATIENCE.as_secs());
    let switched = tokio::time::timeout(PATIENCE, switched).await.with_context(late);
    let Err(error) = switched.and_then(|answer| answer) else { return Switched::Done };
    let refusal = error.downcast_ref::<Refusal>();
    match refusal.is_some_and(|it| it.problem.kind.ends_with(":other-service")) {
        true => Switched::NotMeant,
        false => Switched::Failed(format!("{agent}: {error:#}")),
    }
}
