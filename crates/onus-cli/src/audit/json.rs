//! Everything, for tools.

use std::collections::BTreeMap;

use onus_audit::{Api, RankedEdge, RepeatedWrite, Storms};
use onus_retry_config::{Budget, CalleeBudget, Caller, Place, Policy};
use serde::Serialize;

use super::Outcome;

#[derive(Serialize)]
struct Document<'o> {
    schema_version: u32,
    summary: Summary,
    mean_radius: Option<f64>,
    mean_radius_owned: Option<f64>,
    apis: Vec<ApiEntry<'o>>,
    edges: Vec<EdgeEntry<'o>>,
    changes: Vec<ChangeEntry<'o>>,
    policies: Vec<PolicyEntry<'o>>,
    budgets: Vec<BudgetEntry<'o>>,
    repeated_writes: Vec<WriteEntry<'o>>,
    unread: Vec<String>,
    passed_over: &'o BTreeMap<String, u64>,
    notes: &'o [String],
}

#[derive(Serialize)]
struct Summary {
    services: usize,
    edges: usize,
    retrying_edges: usize,
    without_budget: usize,
    by_default: usize,
    classified: usize,
    policies: usize,
    policies_without_edge: usize,
}

#[derive(Serialize)]
struct ApiEntry<'o> {
    service: &'o str,
    radius: u32,
    radius_owned: u32,
    amplification: f64,
    amplification_budgeted: Option<f64>,
    amplification_owned: f64,
    at_culprit: f64,
    at_culprit_owned: f64,
    path: &'o [String],
    unbounded_through: &'o [String],
}

#[derive(Serialize)]
struct EdgeEntry<'o> {
    caller: &'o str,
    callee: &'o str,
    calls: Option<f64>,
    failure_ratio: Option<f64>,
    attempts_per_call: Option<f64>,
    class: &'static str,
    p: Option<f64>,
    attempts: u32,
    or_more: bool,
    attempts_from: &'static str,
    connections_only: bool,
    budget: Option<BudgetFields>,
    /// Positions in `policies`.
    policies: &'o [usize],
    load: f64,
    load_owned: f64,
}

#[derive(Serialize)]
struct ChangeEntry<'o> {
    change: &'o str,
    radius: u32,
    amplification: f64,
}

#[derive(Serialize)]
struct PolicyEntry<'o> {
    dialect: &'static str,
    #[serde(flatten)]
    place: PlaceFields<'o>,
    caller: String,
    callee: String,
    route: &'o str,
    methods: &'o [String],
    grpc_methods: &'o [String],
    /// None where a budget alone limits them.
    attempts: Option<u32>,
    by_default: bool,
    retried_on: Vec<String>,
    budget: Option<BudgetFields>,
    per_try_timeout_seconds: Option<f64>,
    timeout_seconds: Option<f64>,
    backoff_seconds: Option<f64>,
    backoff_max_seconds: Option<f64>,
}

#[derive(Serialize)]
struct PlaceFields<'o> {
    file: &'o str,
    line: u64,
    object: &'o str,
}

#[derive(Serialize)]
struct BudgetFields {
    percent: f64,
    text: String,
    /// None where it limits nothing.
    requests_per_call: Option<f64>,
}

#[derive(Serialize)]
struct BudgetEntry<'o> {
    dialect: &'static str,
    #[serde(flatten)]
    place: PlaceFields<'o>,
    callee: String,
    budget: BudgetFields,
}

#[derive(Serialize)]
struct WriteEntry<'o> {
    #[serde(flatten)]
    place: PlaceFields<'o>,
    callee: &'o str,
    route: &'o str,
    methods: &'o [String],
    retried_on: &'o [String],
    attempts: &'o str,
}

/// One JSON document, with a line break at its end.
pub(super) fn render(outcome: &Outcome) -> serde_json::Result<String> {
    let audit = &outcome.audit;
    let Storms { apis, mean_radius, mean_radius_owned, edges, gains } = &audit.storms;
    let changes = gains.iter().map(|gain| ChangeEntry {
        change: &gain.change,
        radius: gain.radius,
        amplification: gain.amplification,
    });
    let document = Document {
        schema_version: 1,
        summary: summary(&audit.summary),
        mean_radius: *mean_radius,
        mean_radius_owned: *mean_radius_owned,
        apis: apis.iter().map(api).collect(),
        edges: edges.iter().map(edge).collect(),
        changes: changes.collect(),
        policies: outcome.config.policies.iter().map(policy).collect(),
        budgets: outcome.config.budgets.iter().map(budget).collect(),
        repeated_writes: audit.repeated_writes.iter().map(write).collect(),
        unread: outcome.unread(),
        passed_over: &outcome.config.passed_over,
        notes: &audit.notes,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn summary(summary: &onus_audit::Summary) -> Summary {
    Summary {
        services: summary.services,
        edges: summary.edges,
        retrying_edges: summary.retrying_edges,
        without_budget: summary.without_budget,
        by_default: summary.by_default,
        classified: summary.classified,
        policies: summary.policies,
        policies_without_edge: summary.policies_without_edge,
    }
}

fn api(api: &Api) -> ApiEntry<'_> {
    ApiEntry {
        service: &api.service,
        radius: api.radius,
        radius_owned: api.radius_owned,
        amplification: api.amplification,
        amplification_budgeted: finite(api.amplification_budgeted),
        amplification_owned: api.amplification_owned,
        at_culprit: api.at_culprit.0,
        at_culprit_owned: api.at_culprit.1,
        path: &api.path,
        unbounded_through: &api.unbounded_through,
    }
}

fn edge(edge: &RankedEdge) -> EdgeEntry<'_> {
    let facts = &edge.facts;
    EdgeEntry {
        caller: &facts.caller,
        callee: &facts.callee,
        calls: facts.calls,
        failure_ratio: facts.failure_ratio,
        attempts_per_call: facts.attempts_per_call,
        class: facts.class.as_str(),
        p: facts.p,
        attempts: facts.retries.attempts,
        or_more: facts.retries.or_more,
        attempts_from: facts.retries.from.as_str(),
        connections_only: facts.retries.connections_only,
        budget: facts.retries.budget.map(budget_fields),
        policies: &facts.retries.policies,
        load: edge.load,
        load_owned: edge.load_owned,
    }
}

fn policy(policy: &Policy) -> PolicyEntry<'_> {
    let backoff = policy.backoff;
    PolicyEntry {
        dialect: policy.dialect.as_str(),
        place: place(&policy.place),
        caller: match &policy.caller {
            Caller::Anyone => "anyone".to_owned(),
            Caller::Gateway => "gateways".to_owned(),
            Caller::Service(service) => service.to_string(),
        },
        callee: policy.callee.to_string(),
        route: &policy.route.label,
        methods: &policy.route.methods,
        grpc_methods: &policy.route.grpc_methods,
        attempts: policy.attempts.most(),
        by_default: policy.by_default,
        retried_on: policy.conditions.iter().map(ToString::to_string).collect(),
        budget: policy.budget.map(budget_fields),
        per_try_timeout_seconds: policy.per_try_timeout.map(|time| time.as_secs_f64()),
        timeout_seconds: policy.timeout.map(|time| time.as_secs_f64()),
        backoff_seconds: backoff.map(|backoff| backoff.base.as_secs_f64()),
        backoff_max_seconds: backoff.and_then(|it| it.max).map(|time| time.as_secs_f64()),
    }
}

fn budget(budget: &CalleeBudget) -> BudgetEntry<'_> {
    BudgetEntry {
        dialect: budget.dialect.as_str(),
        place: place(&budget.place),
        callee: budget.callee.to_string(),
        budget: budget_fields(budget.budget),
    }
}

fn budget_fields(budget: Budget) -> BudgetFields {
    BudgetFields {
        percent: budget.percent,
        text: budget.to_string(),
        requests_per_call: finite(budget.requests_per_call()),
    }
}

fn write(write: &RepeatedWrite) -> WriteEntry<'_> {
    WriteEntry {
        place: place(&write.place),
        callee: &write.callee,
        route: &write.route,
        methods: &write.methods,
        retried_on: &write.conditions,
        attempts: &write.attempts,
    }
}

fn place(place: &Place) -> PlaceFields<'_> {
    PlaceFields { file: &place.file, line: place.line, object: &place.object }
}

/// JSON has no infinity.
fn finite(number: f64) -> Option<f64> {
    Some(number).filter(|number| number.is_finite())
}
