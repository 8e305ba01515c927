//! gRPC's service config, as clients have it.

use super::Findings;
use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::policy::{Attempts, Backoff, Budget, BudgetBasis, Caller, Dialect, Floor, Policy};
use crate::route::Route;
use crate::service::Service;
use crate::unread::Why;

pub(super) fn is_service_config(at: &Cursor<'_>) -> bool {
    ["methodConfig", "retryThrottling"].iter().any(|field| at.node.get(field).is_some())
}

pub(super) fn read(at: &Cursor<'_>, findings: &mut Findings) {
    let budget = at.get("retryThrottling").map(|throttling| throttle(&throttling));
    for config in at.list("methodConfig") {
        let Some((block, hedges)) = config
            .get("retryPolicy")
            .map(|retry| (retry, false))
            .or_else(|| Some((config.get("hedgingPolicy")?, true)))
        else {
            findings.pass_over("methodConfig without retries");
            continue;
        };
        let codes = if hedges { "nonFatalStatusCodes" } else { "retryableStatusCodes" };
        block.only(&["maxAttempts", codes, BACKOFF[0], BACKOFF[1], BACKOFF[2], "hedgingDelay"]);
        if hedges {
            block.unread(Why::NotFollowed(
                "hedging sends more attempts than failures; they are taken for retries",
            ));
        }
        let Some(attempts) = block.get("maxAttempts").and_then(|attempts| attempts.count()) else {
            // Clients refuse such a policy, or the whole configuration.
            block.unread(Why::Missing("maxAttempts"));
            continue;
        };
        let conditions: Vec<_> = block
            .list(codes)
            .iter()
            .filter_map(|code| Some((code.word()?, code)))
            .map(|(word, code)| {
                let condition = Condition::of_grpc(&word);
                if let Condition::Unknown(word) = &condition {
                    code.unread(Why::UnknownCondition(word.clone()));
                }
                condition
            })
            .collect();
        if conditions.is_empty() && !hedges {
            block.unread(Why::Missing("retryableStatusCodes"));
            continue;
        }
        let backoff = |field| block.get(field).and_then(|time| time.duration());
        let [base, max] = [backoff(BACKOFF[0]), backoff(BACKOFF[1])];
        for (service, methods) in services(&config) {
            findings.policies.push(Policy {
                place: block.place(),
                dialect: Dialect::Grpc,
                caller: Caller::Anyone,
                callee: service,
                port: None,
                route: Route { label: label(&methods), grpc_methods: methods, ..Route::default() },
                // More than five are five.
                attempts: Attempts::AtMost(attempts.min(MOST)),
                conditions: conditions.clone(),
                budget,
                per_try_timeout: None,
                timeout: config.get("timeout").and_then(|timeout| timeout.duration()),
                backoff: base.map(|base| Backoff { base, max }),
                by_default: false,
            });
        }
    }
}

/// The services that are named, each with its methods; none is all.
fn services(config: &Cursor<'_>) -> Vec<(Service, Vec<String>)> {
    let mut services: Vec<(Service, Vec<String>)> = Vec::new();
    for name in config.list("name") {
        let text = |field| name.get(field).and_then(|text| text.text());
        let full = text("service").unwrap_or("*");
        let service = Service::new(full, None);
        let method = text("method").map(|method| format!("{full}/{method}"));
        match services.iter_mut().find(|(known, _)| *known == service) {
            Some((_, methods)) if !methods.is_empty() => match method {
                Some(method) => methods.push(method),
                None => methods.clear(),
            },
            Some(_) => {}
            None => services.push((service, method.into_iter().collect())),
        }
    }
    services
}

fn label(methods: &[String]) -> String {
    let name = |method: &String| method.rsplit('/').next().unwrap_or(method).to_owned();
    match methods {
        [] => "any".to_owned(),
        [one] => name(one),
        [one, rest @ ..] => format!("{} and {} more", name(one), rest.len()),
    }
}

/// Each failure takes a token and each success gives a part of one; with half of them gone there
/// are no retries.
fn throttle(at: &Cursor<'_>) -> Budget {
    at.only(&["maxTokens", "tokenRatio"]);
    let number = |field| at.get(field).and_then(|number| number.number()).unwrap_or(0.0);
    Budget {
        percent: number("tokenRatio") * 100.0,
        basis: BudgetBasis::Successes,
        floor: Some(Floor::AtOnce((number("maxTokens") / 2.0) as u32)),
    }
}

const MOST: u32 = 5;
const BACKOFF: [&str; 3] = ["initialBackoff", "maxBackoff", "backoffMultiplier"];
