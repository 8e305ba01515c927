//! The services of a plan.

use onus_core::Arm;
use serde_saphyr::Spanned;

use super::ServicePlan;
use crate::file_error::{Fault, at, overall};
use crate::simulate::graph::Graph;
use crate::simulate::scenario::{ModeFile, ScenarioFile, ServiceFile};

/// The services of the graph with what the scenario says of them.
pub(super) fn services(
    graph: &Graph,
    file: &ScenarioFile,
    instances: Option<u32>,
) -> Result<Vec<ServicePlan>, Fault> {
    if let Some((name, value)) = file.services.iter().find(|(name, _)| graph.find(name).is_none()) {
        return Err(at(value, format!("`{name}` is no service of the topology")));
    }
    let depths = graph.depths();
    let mut plans = Vec::with_capacity(graph.names.len());
    let (mut first_instance, mut first_edge) = (0, 0);
    for (service, name) in graph.names.iter().enumerate() {
        let own = file.services.get(name);
        let settings = own.map_or(&file.service, |own| &own.value);
        check(settings, own)?;
        let mut plan = plan(name, depths[service].unwrap_or(0), settings, &file.service, instances);
        plan.first_instance = first_instance;
        first_instance += plan.instances;
        let at_once = settings.parallel.or(file.service.parallel).unwrap_or(false);
        let end = first_edge + graph.links(service).count() as u32;
        if at_once {
            plan.steps.push(first_edge..end);
            first_edge = end;
        } else {
            for step in &graph.steps[service] {
                let end = first_edge + step.len() as u32;
                plan.steps.push(first_edge..end);
                first_edge = end;
            }
        }
        plans.push(plan);
    }
    Ok(plans)
}

fn check(settings: &ServiceFile, own: Option<&Spanned<ServiceFile>>) -> Result<(), Fault> {
    let complain = |message: &str| match own {
        Some(own) => at(own, message.to_owned()),
        None => overall(message.to_owned()),
    };
    if settings.instances == Some(0) || settings.instances > Some(10_000) {
        return Err(complain("a service has 1 to 10000 instances"));
    }
    if settings.workers == Some(0) {
        return Err(complain("a service has at least one worker, or no limit of them"));
    }
    if settings.queue.is_some() && settings.workers.is_none() {
        return Err(complain("a queue needs a limit of workers to wait for"));
    }
    if !(1..=1000).contains(&settings.tries.unwrap_or(1)) {
        return Err(complain("a handler tries each call 1 to 1000 times"));
    }
    Ok(())
}

/// A service; what it does not say is as for all services.
fn plan(
    name: &str,
    depth: u16,
    own: &ServiceFile,
    all: &ServiceFile,
    instances: Option<u32>,
) -> ServicePlan {
    let workers = own.workers.or(all.workers);
    ServicePlan {
        name: name.to_owned(),
        depth,
        instances: own.instances.or(instances).or(all.instances).unwrap_or(1),
        first_instance: 0,
        workers,
        queue: own.queue.or(all.queue).unwrap_or(u32::MAX),
        work: own.work.or(all.work).unwrap_or_default(),
        timeout: own.timeout.or(all.timeout).map(|span| span.0),
        sheds_with_pushback: own.sheds_with_pushback || all.sheds_with_pushback,
        steps: Vec::new(),
        faults: Vec::new(),
        arm: match own.mode {
            ModeFile::Enforce => Arm::Enforce,
            ModeFile::Observe => Arm::Observe,
            ModeFile::Off => Arm::Off,
        },
        onus: own.onus.or(all.onus).unwrap_or(true),
        context_lost: own.context_lost,
        silent_claims: own.silent_claims,
        shield: own.shield,
        retries: own.retries,
        tries: own.tries.unwrap_or(1),
        drops: own.drops,
    }
}
