//! Envoy's own routes and clusters, wherever they are in a dump, as protobuf's JSON or as Go prints
//! them.

use super::Findings;
use super::istio;
use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::policy::{
    Attempts, Backoff, Budget, BudgetBasis, CalleeBudget, Caller, Dialect, Floor, Policy,
};
use crate::route::{Match, Path, Route};
use crate::service::Service;
use crate::unread::Why;

/// Whether nothing else can be in there.
pub(super) fn is_whole(at: &Cursor<'_>) -> bool {
    has(at, "virtual_hosts")
}

fn has(at: &Cursor<'_>, field: &str) -> bool {
    !at.node.entries().is_empty() && at.proto(field).is_some()
}

/// Reads a table of routes or a cluster; false for anything else.
pub(super) fn read(at: &Cursor<'_>, findings: &mut Findings) -> bool {
    if has(at, "virtual_hosts") {
        let name = at.proto("name").and_then(|name| name.text()).unwrap_or_default();
        let table = at.named(format!("routes {name} "));
        for host in list(&table, "virtual_hosts") {
            virtual_host(&host, findings);
        }
        return true;
    }
    let empty_table = has(at, "validate_clusters");
    empty_table || cluster(at, findings)
}

fn virtual_host(host: &Cursor<'_>, findings: &mut Findings) {
    let default = host.proto("retry_policy");
    for route in list(host, "routes") {
        let Some(action) = action(&route) else {
            // Redirects and direct answers call nobody.
            continue;
        };
        let own = action.proto("retry_policy");
        if action.proto("retry_policy_typed_config").is_some() {
            action.unread(Why::NotFollowed("a retry policy of an extension"));
        }
        let Some(retry) = own.or_else(|| default.clone()) else { continue };
        let Some(policy) = policy(&route, &action, &retry) else { continue };
        let callees = callees(&action);
        if callees.is_empty() {
            action.unread(Why::NotFollowed("a cluster that is chosen for each request"));
        }
        for cluster in callees {
            // Istio's sidecar repeats a request to its own application that was not sent.
            if cluster.starts_with("inbound|") {
                if policy.retries_answers(crate::condition::Traffic::Unknown) {
                    retry.unread(Why::NotFollowed("answers are retried on the way in"));
                } else {
                    findings.pass_over("inbound route");
                }
                continue;
            }
            let (callee, port) = (service(cluster), port(cluster));
            findings.policies.push(Policy { callee, port, ..policy.clone() });
        }
    }
}

fn action<'a>(route: &Cursor<'a>) -> Option<Cursor<'a>> {
    route.get("route").or_else(|| route.at(&["Action", "Route"]))
}

/// The policy without its callee; none without conditions.
fn policy(route: &Cursor<'_>, action: &Cursor<'_>, retry: &Cursor<'_>) -> Option<Policy> {
    retry.only(&KNOWN);
    let on = retry.proto("retry_on")?;
    let words = on.word()?;
    let mut conditions = istio::conditions(&on).unwrap_or_default();
    if words.split(',').any(|word| word.trim() == "retriable-status-codes") {
        let statuses = list(retry, "retriable_status_codes");
        let statuses = statuses.iter().filter_map(|status| status.count());
        conditions.extend(statuses.filter_map(|it| u16::try_from(it).ok()).map(Condition::Status));
    }
    if conditions.is_empty() {
        return None;
    }
    let retries = retry.proto("num_retries").and_then(|retries| retries.count()).unwrap_or(1);
    let wait = retry.proto("retry_back_off");
    let wait = |field| wait.as_ref().and_then(|wait| wait.proto(field)?.duration());
    let max = wait("max_interval");
    Some(Policy {
        place: retry.place(),
        dialect: Dialect::Envoy,
        caller: Caller::Anyone,
        callee: Service::new("*", None),
        port: None,
        route: matches(route),
        attempts: Attempts::AtMost(retries.saturating_add(1)),
        conditions,
        budget: None,
        per_try_timeout: retry.proto("per_try_timeout").and_then(|time| time.duration()),
        timeout: action.proto("timeout").and_then(|time| time.duration()),
        backoff: wait("base_interval").map(|base| Backoff { base, max }),
        by_default: false,
    })
}

fn callees<'a>(action: &Cursor<'a>) -> Vec<&'a str> {
    let one = action.get("cluster").or_else(|| action.at(&["ClusterSpecifier", "Cluster"]));
    if let Some(one) = one {
        return one.text().into_iter().collect();
    }
    let weighted = action
        .proto("weighted_clusters")
        .or_else(|| action.at(&["ClusterSpecifier", "WeightedClusters"]));
    let clusters = weighted.map(|weighted| list(&weighted, "clusters")).unwrap_or_default();
    clusters.iter().filter_map(|cluster| cluster.get("name")?.text()).collect()
}

fn matches(route: &Cursor<'_>) -> Route {
    let mut call = Match::default();
    if let Some(matches) = route.get("match") {
        let go = matches.get("PathSpecifier");
        call.path = path(&matches).or_else(|| path(go.as_ref()?));
        for header in list(&matches, "headers") {
            let is_method = header.get("name").and_then(|name| name.text()) == Some(":method");
            let exact = header.proto("string_match").and_then(|it| it.get("exact"));
            let exact = exact.or_else(|| header.proto("exact_match"));
            match exact.filter(|_| is_method).and_then(|exact| exact.text()) {
                Some(method) => call.method = Some(method.to_owned()),
                None => call.also.push("headers".to_owned()),
            }
        }
        for narrower in NARROWER {
            call.also.extend(matches.proto(narrower).map(|_| narrower.to_owned()));
        }
    }
    let name = route.get("name").and_then(|name| name.text()).filter(|name| !name.is_empty());
    let path = call.path.as_ref().map(ToString::to_string);
    let label = name.map(str::to_owned).or(path).unwrap_or_else(|| "any".to_owned());
    let methods = call.method.clone().into_iter().collect();
    Route { label, methods, grpc_methods: Vec::new(), matches: vec![call] }
}

/// The paths of a match, which dumps of Go print in a map of their own and in capitals.
fn path(at: &Cursor<'_>) -> Option<Path> {
    let text = |field| at.proto(field).and_then(|path| path.text()).map(str::to_owned);
    let pattern = || {
        let text = at.proto("safe_regex")?.get("regex").and_then(|regex| regex.text());
        Some(Path::Pattern(text.unwrap_or("a pattern").to_owned()))
    };
    text("prefix")
        .map(Path::Prefix)
        .or_else(|| text("path_separated_prefix").map(Path::Segments))
        .or_else(|| text("path").map(Path::Exact))
        .or_else(pattern)
}

/// The service of a cluster: of Istio's names the host, of others the name.
fn service(cluster: &str) -> Service {
    match cluster.rsplit_once('|') {
        Some((_, host)) if !host.is_empty() => Service::of_host(host, None),
        Some(_) | None => Service::new(cluster, None),
    }
}

/// The port in one of Istio's names of clusters.
fn port(cluster: &str) -> Option<u16> {
    cluster.strip_prefix("outbound|")?.split('|').next()?.parse().ok()
}

/// Reads the budget of a cluster; false where there is none.
fn cluster(at: &Cursor<'_>, findings: &mut Findings) -> bool {
    if !has(at, "circuit_breakers") {
        return false;
    }
    let Some(name) = at.get("name").and_then(|name| name.text()) else { return false };
    let Some(breakers) = at.proto("circuit_breakers") else { return false };
    for threshold in list(&breakers, "thresholds") {
        let Some(budget) = threshold.proto("retry_budget") else { continue };
        let percent = budget.proto("budget_percent").and_then(|it| it.number());
        let floor = budget.proto("min_retry_concurrency").and_then(|it| it.count());
        let interval = budget.proto("budget_interval").and_then(|it| it.duration());
        findings.budgets.push(CalleeBudget {
            place: budget.named(format!("cluster {name} retry budget")).place(),
            dialect: Dialect::Envoy,
            callee: service(name),
            budget: Budget {
                percent: percent.unwrap_or(20.0),
                basis: interval.map_or(BudgetBasis::InFlight, BudgetBasis::Interval),
                floor: Some(Floor::AtOnce(floor.unwrap_or(3))),
            },
        });
    }
    true
}

fn list<'a>(at: &Cursor<'a>, field: &str) -> Vec<Cursor<'a>> {
    at.proto(field).map(|list| list.items()).unwrap_or_default()
}

/// What a match may ask for beside path and headers.
const NARROWER: [&str; 7] = [
    "query_parameters",
    "runtime_fraction",
    "grpc",
    "tls_context",
    "dynamic_metadata",
    "path_match_policy",
    "connect_matcher",
];

/// The fields of a retry policy; those that only choose hosts change no count.
const KNOWN: [&str; 13] = [
    "retry_on",
    "num_retries",
    "per_try_timeout",
    "per_try_idle_timeout",
    "retry_priority",
    "retry_host_predicate",
    "retry_options_predicates",
    "host_selection_retry_max_attempts",
    "retriable_status_codes",
    "retry_back_off",
    "rate_limited_retry_back_off",
    "retriable_headers",
    "retriable_request_headers",
];
