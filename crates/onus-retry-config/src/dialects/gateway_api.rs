//! The Gateway API: routes with retries, and budgets of backends.

use super::kubernetes::{name, namespace};
use super::{Findings, linkerd};
use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::policy::{
    Attempts, Backoff, Budget, BudgetBasis, CalleeBudget, Caller, Dialect, Floor, Policy,
};
use crate::route::{Match, Path, Route};
use crate::service::Service;
use crate::unread::Why;

/// A rule of a route without retries of its own, to which a policy may be attached.
#[derive(Clone, Debug)]
pub(crate) struct RouteRule {
    /// Kind, namespace and name: of the route, then of its parents.
    pub(super) targets: Vec<Target>,
    pub(super) caller: Caller,
    /// With the port that is called, where that is written.
    pub(super) callees: Vec<(Service, Option<u16>)>,
    pub(super) route: Route,
    /// Whether it says itself how it is retried.
    pub(super) has_retries: bool,
}

/// What a policy may be attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) kind: String,
    pub(super) service: Service,
}

pub(super) fn route(object: &Cursor<'_>, findings: &mut Findings) {
    let within = namespace(object);
    let kind = object.node.text("kind").unwrap_or_default();
    let own = Target { kind: kind.to_owned(), service: Service::new(name(object), within) };
    let Some(spec) = object.get("spec") else {
        object.unread(Why::Missing("spec"));
        return;
    };
    let parents: Vec<Target> =
        spec.list("parentRefs").iter().map(|it| target(it, "Gateway", within)).collect();
    let of_service = parents.iter().any(|parent| parent.kind == "Service");
    let caller = if of_service { Caller::Anyone } else { Caller::Gateway };
    for rule in spec.list("rules") {
        let port = |at: &Cursor<'_>| u16::try_from(at.get("port")?.count()?).ok();
        let mut callees: Vec<_> = rule
            .list("backendRefs")
            .iter()
            .map(|backend| (target(backend, "Service", within).service, port(backend)))
            .collect();
        if callees.is_empty() && of_service {
            callees.extend(parents.iter().map(|parent| (parent.service.clone(), None)));
        }
        callees.sort();
        callees.dedup();
        let route = matches(&rule, kind == "GRPCRoute");
        let retry = rule.get("retry");
        let annotated = linkerd::is_annotated(object);
        if let Some(retry) = &retry {
            let policy = policy(&rule, retry, &caller, &route);
            for (callee, port) in &callees {
                let (callee, port) = (callee.clone(), *port);
                findings.policies.push(Policy { callee, port, ..policy.clone() });
            }
        } else if annotated {
            let callers = parents.iter().filter(|parent| parent.kind == "Service");
            let services: Vec<_> = callers.map(|parent| parent.service.clone()).collect();
            let backends = || callees.iter().map(|(callee, _)| callee.clone()).collect();
            let callees = if services.is_empty() { backends() } else { services };
            linkerd::annotations(object, &callees, &route, findings);
        } else {
            findings.pass_over(&format!("rule of {kind} without retries of its own"));
        }
        findings.routes.push(RouteRule {
            targets: [vec![own.clone()], parents.clone()].concat(),
            caller: caller.clone(),
            callees,
            route,
            has_retries: retry.is_some() || annotated,
        });
    }
}

/// The policy without its callee.
fn policy(rule: &Cursor<'_>, retry: &Cursor<'_>, caller: &Caller, route: &Route) -> Policy {
    retry.only(&["codes", "attempts", "backoff"]);
    let retries =
        retry.get("attempts").and_then(|attempts| attempts.count()).unwrap_or_else(|| {
            retry.unread(Why::NotFollowed(
                "without `attempts` the implementation chooses; taken for one retry",
            ));
            1
        });
    let codes = retry.list("codes");
    let codes =
        codes.iter().filter_map(|code| code.count()).map(|code| match u16::try_from(code) {
            Ok(status) => Condition::Status(status),
            Err(_) => Condition::Unknown(code.to_string()),
        });
    let time = |field| rule.at(&["timeouts", field]).and_then(|time| time.duration());
    let backoff = retry.get("backoff").and_then(|backoff| backoff.duration());
    Policy {
        place: retry.place(),
        dialect: Dialect::GatewayApi,
        caller: caller.clone(),
        callee: Service::new("*", None),
        port: None,
        route: route.clone(),
        attempts: Attempts::AtMost(retries.saturating_add(1)),
        conditions: codes.collect(),
        budget: None,
        per_try_timeout: time("backendRequest"),
        timeout: time("request"),
        backoff: backoff.map(|base| Backoff { base, max: None }),
        by_default: false,
    }
}

/// Which calls a rule is for.
fn matches(rule: &Cursor<'_>, grpc: bool) -> Route {
    let mut route = Route::default();
    let mut any = false;
    let mut labels = Vec::new();
    labels.extend(rule.get("name").and_then(|name| name.text()).map(str::to_owned));
    for one in rule.list("matches") {
        if grpc {
            let part = |field| one.at(&["method", field]).and_then(|part| part.text());
            match (part("service"), part("method")) {
                (Some(service), Some(method)) => {
                    route.grpc_methods.push(format!("{service}/{method}"));
                    labels.push(format!("{service}/{method}"));
                }
                (service, method) => {
                    any = true;
                    labels.extend(service.map(str::to_owned));
                    let also = method.map(|_| "method".to_owned()).into_iter();
                    let path = service.map(|service| Path::Segments(format!("/{service}")));
                    let mut call = Match { path, also: also.collect(), ..Match::default() };
                    call.also(&one, &["name", "method"]);
                    route.matches.push(call);
                }
            }
            continue;
        }
        let mut call = Match::default();
        call.also(&one, &["name", "method", "path"]);
        match one.get("method").and_then(|method| method.text()) {
            Some(method) => {
                route.methods.push(method.to_owned());
                call.method = Some(method.to_owned());
            }
            None => any = true,
        }
        if let Some(path) = one.at(&["path", "value"]).and_then(|path| path.text()) {
            // What says nothing of it is a prefix.
            let kind = one.at(&["path", "type"]).and_then(|kind| kind.text());
            let path = match kind.unwrap_or("PathPrefix") {
                "PathPrefix" => Path::Segments(path.to_owned()),
                "Exact" => Path::Exact(path.to_owned()),
                _ => Path::Pattern(path.to_owned()),
            };
            labels.push(path.to_string());
            call.path = Some(path);
        }
        route.matches.push(call);
    }
    if any {
        route.methods.clear();
        route.grpc_methods.clear();
    }
    route.label = if labels.is_empty() { "any".to_owned() } else { labels.join(" ") };
    route
}

/// What a reference means.
pub(super) fn target(at: &Cursor<'_>, kind: &str, within: Option<&str>) -> Target {
    let text = |field| at.get(field).and_then(|field| field.text());
    let service = Service::new(text("name").unwrap_or_default(), text("namespace").or(within));
    Target { kind: text("kind").unwrap_or(kind).to_owned(), service }
}

pub(super) fn backend_traffic_policy(object: &Cursor<'_>, findings: &mut Findings) {
    let Some(constraint) = object.at(&["spec", "retryConstraint"]) else {
        findings.pass_over("BackendTrafficPolicy without retries");
        return;
    };
    constraint.only(&["budget", "minRetryRate"]);
    let number = |keys: &[&str]| constraint.at(keys).and_then(|number| number.number());
    let interval = constraint.at(&["budget", "interval"]).and_then(|interval| interval.duration());
    let per = constraint.at(&["minRetryRate", "interval"]).and_then(|interval| interval.duration());
    let rate = number(&["minRetryRate", "count"]);
    let floor = rate.map(|count| {
        Floor::PerSecond(count / per.unwrap_or(std::time::Duration::from_secs(1)).as_secs_f64())
    });
    let budget = Budget {
        percent: number(&["budget", "percent"]).unwrap_or(20.0),
        basis: BudgetBasis::Interval(interval.unwrap_or(std::time::Duration::from_secs(10))),
        floor: floor.or(Some(Floor::PerSecond(10.0))),
    };
    let targets = object.get("spec").map(|spec| spec.list("targetRefs")).unwrap_or_default();
    for backend in targets {
        findings.budgets.push(CalleeBudget {
            place: constraint.place(),
            dialect: Dialect::GatewayApi,
            callee: target(&backend, "Service", namespace(object)).service,
            budget,
        });
    }
}
