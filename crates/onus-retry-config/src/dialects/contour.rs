//! Contour: HTTPProxy.

use super::Findings;
use super::kubernetes::namespace;
use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::policy::{Attempts, Caller, Dialect, Policy};
use crate::route::{Match, Path, Route};
use crate::service::Service;
use crate::unread::Why;

pub(super) fn http_proxy(object: &Cursor<'_>, findings: &mut Findings) {
    let mut any = false;
    let routes = object.get("spec").map(|spec| spec.list("routes")).unwrap_or_default();
    for route in routes {
        let Some(retry) = route.get("retryPolicy") else { continue };
        any = true;
        retry.only(&["count", "perTryTimeout", "retryOn", "retriableStatusCodes"]);
        let retries = retry.get("count").and_then(|count| count.count()).unwrap_or(1);
        let mut call = Match::default();
        for condition in route.list("conditions") {
            if let Some(prefix) = condition.get("prefix").and_then(|prefix| prefix.text()) {
                call.path = Some(Path::Prefix(prefix.to_owned()));
            }
            call.also(&condition, &["prefix"]);
        }
        for service in route.list("services") {
            let Some(name) = service.get("name").and_then(|name| name.text()) else {
                service.unread(Why::Missing("name"));
                continue;
            };
            findings.policies.push(Policy {
                place: retry.place(),
                dialect: Dialect::Contour,
                caller: Caller::Gateway,
                callee: Service::new(name, namespace(object)),
                port: service
                    .get("port")
                    .and_then(|port| port.count())
                    .and_then(|port| u16::try_from(port).ok()),
                route: Route {
                    label: call.path.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string),
                    matches: vec![call.clone()],
                    ..Route::default()
                },
                attempts: Attempts::AtMost(retries.saturating_add(1)),
                conditions: conditions(&retry),
                budget: None,
                per_try_timeout: retry.get("perTryTimeout").and_then(|time| time.duration()),
                timeout: route.at(&["timeoutPolicy", "response"]).and_then(|it| it.duration()),
                backoff: None,
                by_default: false,
            });
        }
    }
    if !any {
        findings.pass_over("HTTPProxy without retries");
    }
}

fn conditions(retry: &Cursor<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for word in retry.list("retryOn") {
        let Some(text) = word.word().filter(|text| text != "retriable-status-codes") else {
            continue;
        };
        let condition = Condition::of_envoy(&text);
        if let Condition::Unknown(text) = &condition {
            word.unread(Why::UnknownCondition(text.clone()));
        }
        conditions.push(condition);
    }
    let statuses = retry.list("retriableStatusCodes");
    let statuses = statuses.iter().filter_map(|status| status.count());
    conditions.extend(statuses.filter_map(|it| u16::try_from(it).ok()).map(Condition::Status));
    if conditions.is_empty() { vec![Condition::ServerError] } else { conditions }
}
