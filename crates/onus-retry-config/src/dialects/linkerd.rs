//! Linkerd: annotations on services and routes, and ServiceProfiles.

use std::time::Duration;

use super::Findings;
use super::kubernetes::{name, namespace};
use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::policy::{Attempts, Budget, BudgetBasis, CalleeBudget, Caller, Dialect, Floor, Policy};
use crate::route::{Match, Path, Route};
use crate::service::Service;
use crate::unread::Why;

pub(super) fn is_annotated(object: &Cursor<'_>) -> bool {
    let annotations = object.node.get("metadata").and_then(|it| it.get("annotations"));
    annotations.is_some_and(|it| it.entries().iter().any(|(key, _)| key.starts_with(RETRY)))
}

pub(super) fn service(object: &Cursor<'_>, findings: &mut Findings) {
    let callee = Service::new(name(object), namespace(object));
    let route = Route { label: "any".to_owned(), ..Route::default() };
    annotations(object, &[callee], &route, findings);
}

/// Reads the annotations of a service, or of a route to these.
pub(super) fn annotations(
    object: &Cursor<'_>,
    callees: &[Service],
    route: &Route,
    findings: &mut Findings,
) {
    let Some(annotations) = object.at(&["metadata", "annotations"]) else { return };
    let mut conditions = Vec::new();
    let (mut limit, mut per_try, mut timeout) = (1, None, None);
    let mut place = annotations.place();
    for (key, value) in annotations.entries() {
        if let Some(field) = key.strip_prefix(RETRY) {
            place.line = value.place().line;
            match field {
                "http" => conditions.extend(statuses(&value)),
                "grpc" => conditions.extend(codes(&value)),
                "limit" => limit = value.count().unwrap_or(limit),
                "timeout" => per_try = value.duration(),
                _ => value.unread(Why::UnknownField),
            }
        } else if key == "timeout.linkerd.io/request" {
            timeout = value.duration();
        }
    }
    for callee in callees {
        findings.policies.push(Policy {
            place: place.clone(),
            dialect: Dialect::Linkerd,
            caller: Caller::Anyone,
            callee: callee.clone(),
            port: None,
            route: route.clone(),
            attempts: Attempts::AtMost(limit.saturating_add(1)),
            conditions: conditions.clone(),
            budget: None,
            per_try_timeout: per_try,
            timeout,
            backoff: None,
            by_default: false,
        });
    }
}

/// `5xx`, `gateway-error`, statuses and ranges of them.
fn statuses(at: &Cursor<'_>) -> Vec<Condition> {
    words(at, |word| {
        let range = word
            .split_once('-')
            .and_then(|(from, to)| Some(Condition::Statuses(from.parse().ok()?, to.parse().ok()?)));
        range.unwrap_or_else(|| Condition::of_envoy(word))
    })
}

fn codes(at: &Cursor<'_>) -> Vec<Condition> {
    words(at, Condition::of_grpc)
}

fn words(at: &Cursor<'_>, read: impl Fn(&str) -> Condition) -> Vec<Condition> {
    let words = at.word().unwrap_or_default();
    let words = words.split(',').map(str::trim).filter(|word| !word.is_empty());
    let conditions: Vec<_> = words.map(read).collect();
    for condition in &conditions {
        if let Condition::Unknown(word) = condition {
            at.unread(Why::UnknownCondition(word.clone()));
        }
    }
    conditions
}

pub(super) fn service_profile(object: &Cursor<'_>, findings: &mut Findings) {
    let callee = Service::of_host(name(object), namespace(object));
    findings.profiled.push(callee.clone());
    let Some(spec) = object.get("spec") else {
        object.unread(Why::Missing("spec"));
        return;
    };
    let given = spec.get("retryBudget");
    let number = |field, default| {
        let number = given.as_ref().and_then(|budget| budget.get(field)?.number());
        number.unwrap_or(default)
    };
    let ttl = given.as_ref().and_then(|budget| budget.get("ttl")?.duration());
    let budget = Budget {
        percent: number("retryRatio", 0.2) * 100.0,
        basis: BudgetBasis::Interval(ttl.unwrap_or(Duration::from_secs(10))),
        floor: Some(Floor::PerSecond(number("minRetriesPerSecond", 10.0))),
    };
    if let Some(given) = &given {
        given.only(&["retryRatio", "minRetriesPerSecond", "ttl"]);
        findings.budgets.push(CalleeBudget {
            place: given.place(),
            dialect: Dialect::Linkerd,
            callee: callee.clone(),
            budget,
        });
    }
    for route in spec.list("routes") {
        let retryable = route.get("isRetryable");
        if retryable.as_ref().and_then(|it| it.flag()) != Some(true) {
            findings.pass_over("route of ServiceProfile without retries");
            continue;
        }
        findings.policies.push(Policy {
            place: retryable.as_ref().unwrap_or(&route).place(),
            dialect: Dialect::Linkerd,
            caller: Caller::Anyone,
            callee: callee.clone(),
            port: None,
            route: condition(&route),
            attempts: Attempts::WhileBudgetPays,
            // What the profile takes for a failure.
            conditions: vec![Condition::ServerError, Condition::Grpc(UNAVAILABLE)],
            budget: Some(budget),
            per_try_timeout: None,
            timeout: route.get("timeout").and_then(|timeout| timeout.duration()),
            backoff: None,
            by_default: false,
        });
    }
}

/// Which calls a route of a profile is for.
fn condition(route: &Cursor<'_>) -> Route {
    let text = |keys: &[&str]| route.at(keys).and_then(|text| text.text());
    let pattern = text(&["condition", "pathRegex"]);
    let path = pattern.map(|path| path.replace('\\', ""));
    let label = text(&["name"]).map(str::to_owned).or_else(|| path.clone());
    let grpc = path.as_deref().and_then(grpc_method).map(str::to_owned);
    let method = text(&["condition", "method"]).map(str::to_owned);
    let mut call = Match { method: method.clone(), ..Match::default() };
    call.path = pattern.zip(path).map(|(pattern, path)| match is_literal(pattern) {
        true => Path::Exact(path.trim_start_matches('^').trim_end_matches('$').to_owned()),
        false => Path::Pattern(pattern.to_owned()),
    });
    if let Some(condition) = route.get("condition") {
        call.also(&condition, &["method", "pathRegex"]);
    }
    Route {
        label: label.unwrap_or_else(|| "any".to_owned()),
        methods: method.filter(|_| grpc.is_none()).into_iter().collect(),
        grpc_methods: grpc.into_iter().collect(),
        matches: vec![call],
    }
}

/// Whether a pattern means one path: its signs are escaped, but for those of its ends.
fn is_literal(pattern: &str) -> bool {
    let inner = pattern.trim_start_matches('^').trim_end_matches('$');
    let mut signs = inner.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if signs.next().is_some_and(|next| !next.is_ascii_alphanumeric()) => {}
            '/' | '-' | '_' | '~' | '%' | ':' | '@' => {}
            _ if sign.is_ascii_alphanumeric() => {}
            _ => return false,
        }
    }
    true
}

/// The path of a gRPC call is a service with its package, and a method that begins with a capital.
fn grpc_method(path: &str) -> Option<&str> {
    let path = path.trim_start_matches('^').trim_end_matches('$');
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let package = service.contains('.');
    let is_name = |name: &str| name.chars().all(|at| at.is_ascii_alphanumeric() || at == '_');
    let capital = method.starts_with(|first: char| first.is_ascii_uppercase());
    (package && capital && is_name(method) && service.split('.').all(is_name))
        .then(|| path.trim_start_matches('/'))
}

const RETRY: &str = "retry.linkerd.io/";

/// The code that a gRPC callee fails with most.
const UNAVAILABLE: u8 = 14;
