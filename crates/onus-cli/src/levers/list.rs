//! `onus shield --list` and `onus off --list`: what operators have said and that holds.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use onus_api::{Order, Orders, SCHEMA_VERSION};
use tokio::task::JoinSet;

use crate::analysis::{Client, block_on, json, print, tell, whole};
use crate::cli::{LeverOptions, Output};
use crate::table;

pub(super) fn run(lever: &LeverOptions) -> anyhow::Result<()> {
    let mut found = block_on(async {
        match lever.agents.is_empty() {
            true => {
                let all = async |client: &Client| client.get("/api/v1/orders", &[]).await;
                whole(&lever.server, all).await
            }
            false => of_agents(lever).await,
        }
    })?;
    found.orders.sort_by(|one, other| one.service.cmp(&other.service));
    print(&match lever.output {
        Output::Json => json(&found)?,
        Output::Table => {
            tell(&found.missing);
            render(&found.orders, now())
        }
    })
}

/// What was said at each of the processes; processes of one service that agree are one line.
async fn of_agents(lever: &LeverOptions) -> anyhow::Result<Orders> {
    let mut asked = JoinSet::new();
    for agent in lever.agents.clone() {
        let client = Client::to(&lever.server, &agent);
        asked.spawn(async move {
            let orders = async { client?.get::<Orders>("/api/v1/orders", &[]).await };
            orders.await.map_err(|error| format!("the orders at {agent}: {error:#}"))
        });
    }
    let mut all = Orders { schema_version: SCHEMA_VERSION, ..Orders::default() };
    for answer in asked.join_all().await {
        match answer {
            Err(why) => all.missing.push(why),
            Ok(orders) => {
                let whole_seconds = |until: Option<u64>| until.map(|it| it / 2_000);
                for order in orders.orders {
                    let same = |it: &Order| {
                        it.service == order.service
                            && (&it.mode, &it.who, &it.why) == (&order.mode, &order.who, &order.why)
                            && whole_seconds(it.shield_until) == whole_seconds(order.shield_until)
                    };
                    if !all.orders.iter().any(same) {
                        all.orders.push(order);
                    }
                }
            }
        }
    }
    if all.missing.len() == lever.agents.len() {
        bail!("list {}", all.missing.join("; "));
    }
    Ok(all)
}

fn render(orders: &[Order], now: u64) -> String {
    if orders.is_empty() {
        return "no shield is up, and no mode is ordered\n".to_owned();
    }
    let left = |until: Option<u64>| match until {
        None => "taken back".to_owned(),
        Some(until) => table::age(until.saturating_sub(now).div_ceil(1_000)),
    };
    let rows = orders.iter().flat_map(|order| {
        let mode = order.mode.as_ref().map(|mode| (format!("mode {mode}"), left(order.mode_until)));
        let shield = order.shield_until.map(|until| match until {
            0 => ("shield down".to_owned(), left(None)),
            _ => ("shield up".to_owned(), left(Some(until))),
        });
        let service = if order.service == "*" { "all services" } else { &order.service };
        mode.into_iter().chain(shield).map(move |(what, left)| {
            let said = format!("{} ago", table::age(now.saturating_sub(order.made) / 1_000));
            [service.to_owned(), what, left, order.who.clone(), order.why.clone(), said]
        })
    });
    table::render(["SERVICE", "ORDER", "UNTIL IN", "WHO", "WHY", "SAID"], rows)
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "people are told how much is left")]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_services_stand_side_by_side_with_what_is_left_of_each() {
        let order = |service: &str, mode: Option<&str>, mode_until, shield_until| Order {
            service: service.to_owned(),
            mode: mode.map(str::to_owned),
            mode_until,
            shield_until,
            who: "alice".to_owned(),
            why: "db".to_owned(),
            made: 0,
        };
        let text = render(
            &[
                order("*", Some("off"), None, None),
                order("a", Some("enforce 10%"), Some(7_200_000), Some(90_000)),
                order("b", None, None, Some(0)),
            ],
            60_000,
        );
        let lines: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "SERVICE ORDER UNTIL IN WHO WHY SAID",
                "all services mode off taken back alice db 60s ago",
                "a mode enforce 10% 119m alice db 60s ago",
                "a shield up 30s alice db 60s ago",
                "b shield down taken back alice db 60s ago",
            ]
        );
        assert_eq!(render(&[], 0), "no shield is up, and no mode is ordered\n");
    }
}
