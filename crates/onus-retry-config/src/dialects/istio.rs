//! Istio: VirtualService, DestinationRule and the mesh's own defaults.

use super::Findings;
use super::kubernetes::namespace;
use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::import::parse;
use crate::policy::{
    Attempts, Budget, BudgetBasis, CalleeBudget, Caller, Dialect, Floor, Place, Policy,
};
use crate::route::{Match, Path, Route};
use crate::service::Service;
use crate::unread::Why;

/// What is known of the mesh.
#[derive(Debug, Default)]
pub(crate) struct Mesh {
    /// The first object of Istio.
    seen: Option<Place>,
    default: Option<Retries>,
    /// Policies of routes that leave everything, or the conditions, to the defaults.
    leave_attempts: Vec<usize>,
    leave_conditions: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Retries {
    place: Place,
    attempts: Attempts,
    conditions: Vec<Condition>,
}

impl Mesh {
    fn see(&mut self, object: &Cursor<'_>) {
        if self.seen.is_none() {
            self.seen = Some(object.place());
        }
    }

    /// Gives routes the defaults that they leave to the mesh, and tells the defaults.
    pub(super) fn default_policy(&self, policies: &mut [Policy]) -> Option<Policy> {
        let seen = self.seen.clone()?;
        let retries = self.default.clone().unwrap_or_else(|| Retries {
            place: seen,
            attempts: Attempts::AtMost(DEFAULT_ATTEMPTS),
            conditions: default_conditions(),
        });
        for &index in &self.leave_attempts {
            policies[index].attempts = retries.attempts;
        }
        for &index in self.leave_attempts.iter().chain(&self.leave_conditions) {
            policies[index].conditions.clone_from(&retries.conditions);
        }
        let Retries { place, attempts, conditions } = retries;
        Some(Policy { place, attempts, conditions, ..Policy::untouched_istio() })
    }
}

impl Policy {
    /// What a sidecar of Istio does on routes about which nobody has told it anything.
    #[must_use]
    pub fn untouched_istio() -> Self {
        Self {
            place: Place { file: String::new(), line: 0, object: "Istio".to_owned() },
            dialect: Dialect::Istio,
            caller: Caller::Anyone,
            callee: Service::new("*", None),
            port: None,
            route: Route { label: "any".to_owned(), ..Route::default() },
            attempts: Attempts::AtMost(DEFAULT_ATTEMPTS),
            conditions: default_conditions(),
            budget: None,
            per_try_timeout: None,
            timeout: None,
            backoff: None,
            by_default: true,
        }
    }
}

pub(super) fn virtual_service(object: &Cursor<'_>, findings: &mut Findings) {
    findings.istio.see(object);
    let Some(spec) = object.get("spec") else {
        object.unread(Why::Missing("spec"));
        return;
    };
    let gateways: Vec<_> =
        spec.list("gateways").iter().filter_map(|gateway| gateway.text()).collect();
    let by_gateway = !gateways.is_empty() && !gateways.contains(&"mesh");
    let hosts: Vec<_> = spec.list("hosts").iter().filter_map(|host| host.text()).collect();
    let rules = spec.list("http");
    if rules.is_empty() {
        findings.pass_over("VirtualService without HTTP");
    }
    for rule in rules {
        let default_caller = if by_gateway { Caller::Gateway } else { Caller::Anyone };
        http_rule(&rule, namespace(object), &default_caller, &hosts, findings);
    }
}

fn http_rule(
    rule: &Cursor<'_>,
    namespace: Option<&str>,
    caller: &Caller,
    hosts: &[&str],
    findings: &mut Findings,
) {
    let (route, callers) = matches(rule, namespace);
    let retries = rule.get("retries");
    if let (Some(delegate), Some(_)) = (rule.get("delegate"), &retries) {
        delegate.unread(Why::NotFollowed("a delegate has its own retries; those here are not its"));
        return;
    }
    let mut callees: Vec<(Service, Option<u16>)> = rule
        .list("route")
        .iter()
        .filter_map(|target| {
            let host = target.at(&["destination", "host"])?.text()?;
            let port = target.at(&["destination", "port", "number"]).and_then(|port| port.count());
            Some((Service::of_host(host, namespace), port.and_then(|it| u16::try_from(it).ok())))
        })
        .collect();
    if callees.is_empty() {
        // Redirects, direct answers and delegates call nobody.
        let calls_nobody = ["redirect", "directResponse", "delegate"];
        if calls_nobody.iter().any(|field| rule.get(field).is_some()) {
            return;
        }
        callees.extend(hosts.iter().map(|host| (Service::of_host(host, namespace), None)));
    }
    callees.sort();
    callees.dedup();
    let read = retries.as_ref().map(retry_block);
    for (callee, port) in callees {
        for caller in if callers.is_empty() { vec![caller.clone()] } else { callers.clone() } {
            let index = findings.policies.len();
            match &read {
                None => findings.istio.leave_attempts.push(index),
                Some(block) if block.conditions.is_none() => {
                    findings.istio.leave_conditions.push(index);
                }
                Some(_) => {}
            }
            findings.policies.push(Policy {
                place: retries.as_ref().unwrap_or(rule).place(),
                dialect: Dialect::Istio,
                caller,
                callee: callee.clone(),
                port,
                route: route.clone(),
                attempts: read.as_ref().map_or(Attempts::AtMost(1), |block| block.attempts),
                conditions: read.as_ref().and_then(|it| it.conditions.clone()).unwrap_or_default(),
                budget: None,
                per_try_timeout: retries
                    .as_ref()
                    .and_then(|retries| retries.get("perTryTimeout")?.duration()),
                timeout: rule.get("timeout").and_then(|timeout| timeout.duration()),
                backoff: None,
                by_default: read.is_none(),
            });
        }
    }
}

struct RetryBlock {
    attempts: Attempts,
    /// None where they are left to the mesh.
    conditions: Option<Vec<Condition>>,
}

fn retry_block(retries: &Cursor<'_>) -> RetryBlock {
    retries.only(&[
        "attempts",
        "perTryTimeout",
        "retryOn",
        "retryRemoteLocalities",
        "retryIgnorePreviousHosts",
        "backoff",
    ]);
    let given = retries.get("attempts").and_then(|attempts| attempts.count());
    // Zero is none; a block without the field is what protobuf makes of zero.
    let attempts = Attempts::AtMost(given.unwrap_or(0).saturating_add(1));
    let conditions = retries.get("retryOn").and_then(|on| conditions(&on));
    RetryBlock { attempts, conditions }
}

/// Words of Envoy, between commas.
pub(super) fn conditions(at: &Cursor<'_>) -> Option<Vec<Condition>> {
    let words = at.word()?;
    let mut conditions = Vec::new();
    for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        // The statuses themselves stand beside it.
        if word == "retriable-status-codes" {
            continue;
        }
        let condition = Condition::of_envoy(word);
        if let Condition::Unknown(word) = &condition {
            at.unread(Why::UnknownCondition(word.clone()));
        }
        conditions.push(condition);
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// Which calls a rule is for, and whose where it says so.
fn matches(rule: &Cursor<'_>, namespace: Option<&str>) -> (Route, Vec<Caller>) {
    let mut route = Route::default();
    let (mut any_method, mut any_caller) = (false, false);
    let (mut labels, mut callers) = (Vec::new(), Vec::new());
    labels.extend(rule.get("name").and_then(|name| name.text()).map(str::to_owned));
    let matches = rule.list("match");
    for one in &matches {
        let method = one.at(&["method", "exact"]).and_then(|method| method.text());
        let mut call = Match { method: method.map(str::to_owned), ..Match::default() };
        match &call.method {
            Some(method) => route.methods.push(method.clone()),
            // What a pattern lets through is not known: all are.
            None => {
                any_method = true;
                call.also.extend(one.get("method").map(|_| "method".to_owned()));
            }
        }
        let app = one.at(&["sourceLabels", "app"]).and_then(|app| app.text());
        match app {
            Some(app) => callers.push(Caller::Service(Service::new(app, namespace))),
            None => any_caller = true,
        }
        if let Some((how, path)) = one.get("uri").and_then(|uri| uri.entries().into_iter().next()) {
            let text = path.text().unwrap_or_default().to_owned();
            let path = match how {
                "prefix" => Path::Prefix(text),
                "exact" => Path::Exact(text),
                _ => Path::Pattern(text),
            };
            labels.push(path.to_string());
            call.path = Some(path);
        }
        call.also(one, &["name", "uri", "method", "sourceLabels", "gateways"]);
        // Whose calls these are is said by the label for the application alone.
        let labels = one.get("sourceLabels").map(|it| it.entries()).unwrap_or_default();
        if labels.iter().any(|(label, _)| *label != "app") {
            call.also.push("sourceLabels".to_owned());
        }
        route.matches.push(call);
    }
    if any_method {
        route.methods.clear();
    }
    // Which of the calls are whose is not followed.
    let named = !callers.is_empty();
    if any_caller {
        callers.clear();
    }
    if any_caller && named || callers.iter().any(|caller| *caller != callers[0]) {
        route.matches.iter_mut().for_each(|call| call.also.push("sourceLabels".to_owned()));
    }
    route.label = if labels.is_empty() { "any".to_owned() } else { labels.join(" ") };
    (route, callers)
}

pub(super) fn destination_rule(object: &Cursor<'_>, findings: &mut Findings) {
    findings.istio.see(object);
    let Some(host) = object.at(&["spec", "host"]).and_then(|host| host.text()) else {
        object.unread(Why::Missing("spec.host"));
        return;
    };
    let callee = Service::of_host(host, namespace(object));
    let mut policies: Vec<_> = object.at(&["spec", "trafficPolicy"]).into_iter().collect();
    if let Some(spec) = object.get("spec") {
        policies.extend(spec.list("subsets").iter().filter_map(|it| it.get("trafficPolicy")));
    }
    let ports: Vec<_> =
        policies.iter().flat_map(|policy| policy.list("portLevelSettings")).collect();
    let mut any = false;
    for policy in policies.iter().chain(&ports) {
        if let Some(limit) = policy.at(&["connectionPool", "http", "maxRetries"]) {
            limit.unread(Why::NotFollowed("a limit of retries at once, whatever the traffic"));
            any = true;
        }
        let Some(budget) = policy.get("retryBudget") else { continue };
        any = true;
        budget.only(&["percent", "minRetryConcurrency", "budgetInterval"]);
        let interval = budget.get("budgetInterval").and_then(|interval| interval.duration());
        findings.budgets.push(CalleeBudget {
            place: budget.place(),
            dialect: Dialect::Istio,
            callee: callee.clone(),
            budget: Budget {
                percent: budget.get("percent").and_then(|it| it.number()).unwrap_or(20.0),
                basis: interval.map_or(BudgetBasis::InFlight, BudgetBasis::Interval),
                floor: Some(Floor::AtOnce(
                    budget.get("minRetryConcurrency").and_then(|it| it.count()).unwrap_or(3),
                )),
            },
        });
    }
    if !any {
        findings.pass_over("DestinationRule without retries");
    }
}

/// The settings of the mesh, as a text inside of an object.
pub(super) fn is_mesh_config(object: &Cursor<'_>) -> bool {
    object.node.get("data").is_some_and(|data| data.text("mesh").is_some())
}

pub(super) fn mesh_config(object: &Cursor<'_>, findings: &mut Findings) {
    findings.istio.see(object);
    let Some(mesh) = object.at(&["data", "mesh"]) else { return };
    let Some(text) = mesh.text() else { return };
    match parse(text) {
        Ok(node) => {
            let source = mesh.source_inside();
            let inside = mesh.inside(&node, &source);
            if let Some(policy) = inside.get("defaultHttpRetryPolicy") {
                let block = retry_block(&policy);
                findings.istio.default = Some(Retries {
                    place: policy.place(),
                    attempts: block.attempts,
                    conditions: block.conditions.unwrap_or_else(default_conditions),
                });
            }
            mesh.take_unread(source);
        }
        Err((_, error)) => mesh.unread(Why::Syntax(error)),
    }
}

/// Two retries.
const DEFAULT_ATTEMPTS: u32 = 3;

/// Since Istio 1.24; before that 503 was among them.
fn default_conditions() -> Vec<Condition> {
    ["connect-failure", "refused-stream", "unavailable", "cancelled"]
        .into_iter()
        .map(Condition::of_envoy)
        .collect()
}
