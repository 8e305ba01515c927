//! `onus shield` and `onus off`: what an operator may do in an incident.

mod agents;
mod list;

use anyhow::Context;
use onus_api::{OrderRequest, Orders, Snapshot, SwitchRequest};

use crate::analysis::{Client, block_on, print, whole};
use crate::cli::{LeverOptions, OffOptions, Server, ShieldOptions};
use crate::exit::Refused;

/// What is ordered, of which service.
struct Ordered {
    /// `*` for all of them.
    service: String,
    mode: Option<&'static str>,
    mode_seconds: Option<u64>,
    shield_seconds: Option<u64>,
    /// What is so when it is done.
    done: String,
}

pub(crate) fn shield(options: &ShieldOptions) -> anyhow::Result<()> {
    if options.lever.list {
        return list::run(&options.lever);
    }
    let service = options.service.clone().unwrap_or_default();
    let seconds = if options.end { 0 } else { options.time.as_secs() };
    let done = match seconds {
        0 => format!("the shield of {service} is down"),
        _ => format!("the shield of {service} is up for {seconds} s"),
    };
    let shield_seconds = Some(seconds);
    throw(
        &options.lever,
        &Ordered { service, mode: None, mode_seconds: None, shield_seconds, done },
    )
}

pub(crate) fn off(options: &OffOptions) -> anyhow::Result<()> {
    if options.lever.list {
        return list::run(&options.lever);
    }
    let service = match (&options.service, options.all) {
        (Some(service), false) => service.as_str(),
        (None, true) => "*",
        (Some(_), true) | (None, false) => {
            return Err(Refused("say one service, or --all".to_owned()).into());
        }
    };
    let subject = if service == "*" { "all services" } else { service };
    let (mode, done) = match (options.back, options.time) {
        (true, _) => ("none", format!("ownership of {subject} is as it was before")),
        (false, None) => ("off", format!("ownership of {subject} is off until it is taken back")),
        (false, Some(time)) => {
            ("off", format!("ownership of {subject} is off for {} s", time.as_secs()))
        }
    };
    let order = Ordered {
        service: service.to_owned(),
        mode: Some(mode),
        mode_seconds: options.time.map(|time| time.as_secs()),
        shield_seconds: None,
        done,
    };
    throw(&options.lever, &order)
}

fn throw(lever: &LeverOptions, order: &Ordered) -> anyhow::Result<()> {
    let Ordered { service, mode, mode_seconds, shield_seconds, done } = order;
    let (mode, mode_seconds) = (mode.map(str::to_owned), *mode_seconds);
    let shield_seconds = *shield_seconds;
    let (who, why) = (lever.who.clone(), lever.reason.clone().unwrap_or_default());
    block_on(async {
        if !lever.agents.is_empty() {
            let service = Some(service.clone());
            let request = SwitchRequest { service, mode, mode_seconds, shield_seconds, who, why };
            return agents::switch(lever, &request, done).await;
        }
        let service = service.clone();
        let request = OrderRequest { service, mode, mode_seconds, shield_seconds, who, why };
        everywhere(&lever.server, &request).await?;
        tell_of_nobody(&lever.server, &request.service).await;
        print(&format!("{done}; agents follow within 15 s\n"))
    })
}

/// Tells whoever has mistyped a name that nobody is there to follow. An order may come before its
/// service all the same.
async fn tell_of_nobody(server: &Server, service: &str) {
    let snapshot: anyhow::Result<Snapshot> =
        whole(server, async |client| client.get("/api/v1/now", &[]).await).await;
    let Ok(snapshot) = snapshot else { return };
    if service != "*" && !snapshot.services.iter().any(|it| it.service == service) {
        anstream::eprintln!(
            "note: no process of {service} has reported; the order holds for those that will"
        );
    }
}

/// To the analysis that has the service; what is for all of them to each analysis.
async fn everywhere(server: &Server, request: &OrderRequest) -> anyhow::Result<()> {
    let post = async |client: anyhow::Result<Client>| {
        client?.post::<Orders>("/api/v1/orders", request).await.context(
            "order it; with the analysis down, name the admin addresses of the service's processes with --agents, or write its switch file",
        )
    };
    let orders = post(Client::new(server)).await?;
    if request.service == "*" {
        for address in &orders.elsewhere {
            post(Client::to(server, address)).await?;
        }
    }
    Ok(())
}
