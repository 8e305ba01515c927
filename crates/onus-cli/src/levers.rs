//! `onus shield` and `onus off`: what an operator may do in an incident.

use std::time::Duration;

use anyhow::{Context, bail};
use onus_api::{OrderRequest, Orders, Snapshot, SwitchRequest};

use crate::analysis::{Client, block_on, print};
use crate::cli::{LeverOptions, OffOptions, ShieldOptions};
use crate::exit::Refused;

pub(crate) fn shield(options: &ShieldOptions) -> anyhow::Result<()> {
    let seconds = if options.down { 0 } else { options.time.as_secs() };
    let done = match seconds {
        0 => format!("the shield of {} is down", options.service),
        _ => format!("the shield of {} is up for {seconds} s", options.service),
    };
    throw(&options.lever, &options.service, None, None, Some(seconds), &done)
}

pub(crate) fn off(options: &OffOptions) -> anyhow::Result<()> {
    let service = match (&options.service, options.all) {
        (Some(service), false) => service.as_str(),
        (None, true) => "*",
        (Some(_), true) | (None, false) => {
            return Err(Refused("say one service, or --all".to_owned()).into());
        }
    };
    let subject = if service == "*" { "all services" } else { service };
    let (mode, done) = match options.back {
        true => ("none", format!("ownership of {subject} is as it was before")),
        false => ("off", format!("ownership of {subject} is off")),
    };
    throw(&options.lever, service, Some(mode), options.time, None, &done)
}

fn throw(
    lever: &LeverOptions,
    service: &str,
    mode: Option<&str>,
    mode_time: Option<Duration>,
    shield_seconds: Option<u64>,
    done: &str,
) -> anyhow::Result<()> {
    let who = lever.who.clone();
    let why = lever.reason.clone();
    block_on(async {
        if !lever.agents.is_empty() {
            let mode = mode.filter(|&mode| mode != "none").map(str::to_owned);
            let request = SwitchRequest { mode, shield_seconds, who, why };
            return at_agents(lever, &request, done).await;
        }
        let request = OrderRequest {
            service: service.to_owned(),
            mode: mode.map(str::to_owned),
            mode_seconds: mode_time.map(|time| time.as_secs()),
            shield_seconds,
            who,
            why,
        };
        let client = Client::new(&lever.server)?;
        let _: Orders = client.post("/api/v1/orders", &request).await.context(
            "order it; with the analysis down, name the admin addresses of the service's processes with --agents, or write its switch file",
        )?;
        print(&format!("{done}; agents follow within 15 s\n"))
    })
}

/// Each process by itself; that of some cannot be reached does not keep it from the others.
async fn at_agents(
    lever: &LeverOptions,
    request: &SwitchRequest,
    done: &str,
) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for agent in &lever.agents {
        let switched = async {
            let client = Client::at(agent, lever.server.token.clone())?;
            client.post::<Snapshot>("/api/v1/switch", request).await
        };
        if let Err(error) = switched.await {
            failed.push(format!("{agent}: {error:#}"));
        }
    }
    let count = lever.agents.len() - failed.len();
    print(&format!("{done} in {count} of {} processes\n", lever.agents.len()))?;
    if failed.is_empty() {
        return Ok(());
    }
    bail!("switch {}", failed.join("; "))
}
