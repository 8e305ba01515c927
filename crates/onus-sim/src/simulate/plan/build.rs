//! From a scenario, as it is typed, to plans.

use onus_core::{Arm, DeclaredRetries, Deposit, ErrorSet};
use serde_saphyr::Spanned;

use super::{Plan, Until, faults, links, services};
use crate::file_error::{Fault, at, overall};
use crate::simulate::graph::Graph;
use crate::simulate::policy::{Kind, Policy, Scope, budget, resolve};
use crate::simulate::rivals::RivalKind;
use crate::simulate::scenario::{BackoffFile, Parameter, PolicyOptions, RetriesBy, ScenarioFile};

/// What the scenario sets up, before a policy is chosen.
pub(crate) struct Setting {
    plan: Plan,
    graph: Graph,
    faulty: Vec<usize>,
    attempts: u32,
}

/// The value that a sweep sets, if it is of this parameter.
fn swept(sweep: Option<(Parameter, f64)>, parameter: Parameter) -> Option<f64> {
    sweep.and_then(|(swept, value)| (swept == parameter).then_some(value))
}

/// Sets a scenario up on its graph.
pub(crate) fn setting(
    file: &ScenarioFile,
    graph: Graph,
    sweep: Option<(Parameter, f64)>,
) -> Result<Setting, Fault> {
    let instances = swept(sweep, Parameter::Instances).map(|value| value as u32);
    let (faulty, outage) = faults::faulty(&file.faults);
    let mut plan = Plan {
        services: services::services(&graph, file, instances)?,
        edges: links::edges(&graph, file.timeout.map(|span| span.0)),
        entries: entries(&graph),
        rate: swept(sweep, Parameter::Rate).map_or_else(|| rate(file), Ok)?,
        until: until(file)?,
        bad_keys: swept(sweep, Parameter::BadKeys).unwrap_or(file.bad_keys.0),
        depth_max: graph.depth_max,
        deadlines: file.deadlines,
        cancellation: file.cancellation,
        waits: file.backoff == BackoffFile::Default,
        balancing: file.balancing,
        changes: Vec::new(),
        focus: Vec::new(),
        outage,
        policy: Policy {
            name: String::new(),
            scope: Scope::All,
            kind: Kind::Rival(RivalKind::IstioHttp),
        },
    };
    for edge in &file.edges {
        links::adjust(&mut plan, &graph, edge)?;
    }
    let probability = swept(sweep, Parameter::Probability);
    for fault in &file.faults {
        faults::put(&mut plan, &graph, fault, probability)?;
    }
    plan.changes.sort_by_key(|(at, _)| *at);
    let faulty: Vec<_> =
        faulty.into_iter().map(|name| find(&graph, name)).collect::<Result<_, _>>()?;
    let mut focus = match file.focus.as_slice() {
        [] => faulty.clone(),
        names => names.iter().map(|name| find(&graph, name)).collect::<Result<_, _>>()?,
    };
    focus.sort_unstable();
    focus.dedup();
    plan.focus = focus.into_iter().map(|service| service as u32).collect();
    let attempts = swept(sweep, Parameter::Attempts).map_or(file.attempts, |value| value as u32);
    Ok(Setting { plan, graph, faulty, attempts })
}

/// The scenario under a policy.
pub(crate) fn under(
    setting: &Setting,
    options: &PolicyOptions,
    sweep: Option<(Parameter, f64)>,
) -> Result<Plan, Fault> {
    let mut options = options.clone();
    if let Some(percent) = swept(sweep, Parameter::Percent)
        && (options.percent.is_some() || options.policy.has_budget())
    {
        options.percent = Some(percent as u32);
    }
    if let Some(floor) = swept(sweep, Parameter::Floor)
        && (options.floor.is_some() || options.policy.has_budget())
    {
        options.floor = Some(floor as u32);
    }
    let policy = resolve(&options, setting.attempts, &setting.graph, &setting.faulty)?;
    let mut plan = setting.plan.clone();
    plan.policy = policy;
    let shipped = plan.shipped().copied();
    for service in &mut plan.services {
        service.onus &= shipped.is_some_and(|shipped| shipped.owns);
        if !service.onus {
            service.arm = Arm::Off;
        }
        service.silent_claims |= shipped.is_some_and(|shipped| shipped.silent_claims);
    }
    let mut first_memory = 0;
    for caller in 0..plan.services.len() {
        let edges: Vec<_> = plan.services[caller].steps.iter().cloned().flatten().collect();
        for edge in edges {
            equip(&mut plan, caller, edge as usize, setting.attempts);
            plan.edges[edge as usize].first_memory = first_memory;
            first_memory += plan.services[caller].instances;
        }
    }
    Ok(plan)
}

/// Gives an edge its policy.
fn equip(plan: &mut Plan, caller: usize, edge: usize, attempts: u32) {
    let service = &plan.services[caller];
    let retried = match &plan.policy.scope {
        Scope::All => true,
        Scope::Top => plan.entries.iter().any(|(entry, _)| *entry as usize == caller),
        Scope::Into(services) => services.contains(&(plan.edges[edge].to as usize)),
    };
    let by_layer = service.retries != RetriesBy::Policy;
    let own_attempts = plan.edges[edge].own_attempts;
    let mut policy = plan.policy.of_edge(retried && !by_layer, own_attempts, plan.waits);
    if let (Some(retry), Some(percent)) = (&mut policy.retry, plan.edges[edge].own_budget_percent) {
        retry.budget = Some(budget(percent, Deposit::Request, 0));
    }
    let layer_attempts = if by_layer { own_attempts.unwrap_or(attempts) } else { 0 };
    if layer_attempts >= 2 {
        let errors = ErrorSet::failures();
        policy.declared = Some(DeclaredRetries { attempts: layer_attempts, errors });
    }
    let edge = &mut plan.edges[edge];
    edge.retried = retried && !by_layer;
    edge.layer_attempts = layer_attempts;
    edge.policy = policy;
}

/// The place of a service that the scenario names.
pub(super) fn find(graph: &Graph, name: &Spanned<String>) -> Result<usize, Fault> {
    let known = graph.find(&name.value);
    known.ok_or_else(|| at(name, format!("`{}` is no service of the topology", name.value)))
}

/// The entries with the shares of the traffic up to and with them.
fn entries(graph: &Graph) -> Vec<(u32, f64)> {
    let all: f64 = graph.entries.iter().map(|(_, weight)| weight).sum();
    let mut share = 0.0;
    let shares = graph.entries.iter().map(|(service, weight)| {
        share += weight / all;
        (*service as u32, share)
    });
    shares.collect()
}

fn rate(file: &ScenarioFile) -> Result<f64, Fault> {
    let rate = &file.arrivals.rate;
    if (1e-3..=1e7).contains(&rate.value) {
        return Ok(rate.value);
    }
    Err(at(rate, format!("{} requests per second; allowed is 0.001 to 10000000", rate.value)))
}

fn until(file: &ScenarioFile) -> Result<Until, Fault> {
    match (file.arrivals.requests, file.arrivals.lasts) {
        (Some(requests), None) if requests > 0 => Ok(Until::Requests(requests)),
        (None, Some(span)) if span.0 > 0 => Ok(Until::Nanos(span.0)),
        (Some(_) | None, Some(_) | None) => Err(overall(
            "arrivals need `requests` or `for`, one of them and more than nothing".to_owned(),
        )),
    }
}
