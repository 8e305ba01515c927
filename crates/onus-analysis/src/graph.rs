//! The mesh as a graph of services: what a storm comes to in it.

use std::collections::{BTreeMap, BTreeSet};

use onus_api::{GraphEdge, GraphPage, Radius, RadiusPage, SCHEMA_VERSION, ServiceNow, Storm};
use onus_core::EdgeClass;
use onus_graph::{Change, Coverage, Edge, Graph, Ownership, Service, ServiceId};
use onus_learn::MeasuredClass;

use crate::book::Book;
use crate::clock::Millis;
use crate::gaps;

/// A service loses the context of its requests where more of its claims than one in so many say so.
const CONTEXT_LOST_ONE_IN: u64 = 20;

/// The calls of one service to another, over all their procedures.
struct Pair {
    attempts: u32,
    /// Whether the caller survives by all that was measured.
    survives: bool,
    /// Whether agents are told so of any procedure.
    held_open: bool,
    class: EdgeClass,
}

/// The services and calls that a book knows.
pub(crate) fn page(book: &Book, now: Millis) -> GraphPage {
    let mut pairs: BTreeMap<(&str, &str), Pair> = BTreeMap::new();
    for row in book.edges() {
        let key = row.key;
        let ends = (&**book.names.name(key.caller), &**book.names.name(key.callee));
        let policy = &row.policy;
        // A layer below that nobody declared makes two attempts at least.
        let foreign = if policy.foreign_retries { 2 } else { 1 };
        let attempts = policy.attempts.max(policy.declared_attempts).max(foreign);
        let class = book.class(row, now);
        let survives = row.told.class == MeasuredClass::FailOpen;
        let pair =
            pairs.entry(ends).or_insert(Pair { attempts: 1, survives, held_open: false, class });
        pair.attempts = pair.attempts.max(attempts);
        pair.survives &= survives;
        pair.held_open |= class == EdgeClass::FailOpen;
        if class != pair.class {
            pair.class = EdgeClass::Unknown;
        }
    }
    let coverage = coverage(book, now);
    let services: BTreeSet<&str> = pairs.keys().flat_map(|&(from, to)| [from, to]).collect();
    let covered = |name| coverage.get(name).copied().unwrap_or(Coverage::NonCooperative);
    GraphPage {
        schema_version: SCHEMA_VERSION,
        services: services
            .into_iter()
            .map(|name| (name.to_owned(), told(covered(name)).to_owned()))
            .collect(),
        edges: pairs
            .into_iter()
            .map(|((caller, callee), pair)| GraphEdge {
                caller: caller.to_owned(),
                callee: callee.to_owned(),
                attempts: pair.attempts,
                class: pair.class.as_str().to_owned(),
                fail_open: pair.survives,
                held_fail_open: pair.held_open,
            })
            .collect(),
        missing: gaps::missing(book),
        elsewhere: Vec::new(),
    }
}

const fn told(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::Enforcing => "enforcing",
        Coverage::Observing => "observing",
        Coverage::ContextLost => "context-lost",
        Coverage::NonCooperative => "non-cooperative",
    }
}

/// How far retry storms may reach below the service of this name, or below all that nobody calls;
/// the page may have been put together of those of several analyses.
#[must_use]
pub fn radius(page: &GraphPage, named: Option<&str>) -> RadiusPage {
    let storms = Mesh::of(page).radius(named);
    RadiusPage { missing: page.missing.clone(), elsewhere: page.elsewhere.clone(), ..storms }
}

/// The graph of all services that are known, with their names.
struct Mesh<'a> {
    graph: Graph,
    ids: BTreeMap<&'a str, ServiceId>,
}

impl<'a> Mesh<'a> {
    fn of(page: &'a GraphPage) -> Self {
        let mut mesh = Self { graph: Graph::new(), ids: BTreeMap::new() };
        let known = [Coverage::Enforcing, Coverage::Observing, Coverage::ContextLost];
        for (name, coverage) in &page.services {
            let covered = known.into_iter().find(|it| told(*it) == coverage);
            let covered = covered.unwrap_or(Coverage::NonCooperative);
            let id = mesh.graph.add_service(Service::new(name).covered(covered));
            mesh.ids.insert(name, id);
        }
        for pair in &page.edges {
            let ends = [&pair.caller, &pair.callee].map(|name| mesh.ids.get(name.as_str()));
            let [Some(&from), Some(&to)] = ends else { continue };
            let edge = Edge {
                fail_open: pair.fail_open,
                held_fail_open: pair.held_fail_open,
                ..Edge::retrying(pair.attempts)
            };
            mesh.graph.add_edge(from, to, edge);
        }
        mesh
    }

    /// The storms below the services of these names, or below all that nobody calls.
    fn radius(&self, named: Option<&str>) -> RadiusPage {
        let ids: Vec<ServiceId> = match named {
            Some(name) => self.ids.get(name).copied().into_iter().collect(),
            None => self.graph.entries(),
        };
        let all = [Ownership::Nowhere, Ownership::AsIs, Ownership::Everywhere]
            .map(|ownership| self.graph.storms(ownership));
        let services = ids.into_iter().map(|id| {
            let [without, now, everywhere] =
                all.each_ref().map(|storms| self.storm(&storms.below(id)));
            let service = self.name(id);
            // It tries every change on a copy of the graph: for one service, not for all.
            let advice = match named {
                Some(_) => self.advice(id),
                None => Vec::new(),
            };
            Radius { service, without, now, everywhere, advice }
        });
        RadiusPage {
            schema_version: SCHEMA_VERSION,
            services: services.collect(),
            ..RadiusPage::default()
        }
    }

    fn storm(&self, storm: &onus_graph::Storm) -> Storm {
        let names = |ids: &[ServiceId]| ids.iter().map(|&id| self.name(id)).collect();
        Storm {
            radius: storm.radius,
            amplification: storm.amplification,
            reach: storm.reach,
            path: names(&storm.path),
            unbounded_through: names(&storm.unbounded_through),
        }
    }

    fn advice(&self, id: ServiceId) -> Vec<String> {
        let advice = self.graph.advice(id, Ownership::AsIs).into_iter().map(|advice| {
            let what = match advice.change {
                Change::Cover(service) => {
                    format!("let {} enforce, with the context of its requests", self.name(service))
                }
                Change::Learn(caller, callee) => {
                    let (caller, callee) = (self.name(caller), self.name(callee));
                    format!("drop the override by which {caller} survives {callee}")
                }
                Change::Budget(caller, callee) => {
                    let (caller, callee) = (self.name(caller), self.name(callee));
                    format!("give the retries of {caller} to {callee} a budget")
                }
                Change::LeaveOut(service) => format!("without Onus in {}", self.name(service)),
            };
            format!("{what}: radius {}, amplification {}", advice.radius, advice.amplification)
        });
        advice.collect()
    }

    fn name(&self, id: ServiceId) -> String {
        self.graph.service(id).map_or_else(String::new, |service| service.name.clone())
    }
}

/// How far ownership reaches in each service that reports.
fn coverage(book: &Book, now: Millis) -> BTreeMap<&str, Coverage> {
    let mut services: BTreeMap<&str, ServiceNow> = BTreeMap::new();
    for (_, row) in book.instances() {
        services.entry(book.names.name(row.service)).or_default().add(ServiceNow {
            facts: row.facts.clone(),
            // The newest process tells the mode.
            seen: row.seen.0.min(now.0),
            ..ServiceNow::default()
        });
    }
    for row in book.procedures() {
        let service = services.entry(book.names.name(row.key.service)).or_default();
        service.counts = service.counts.plus(row.counts);
    }
    let of = |service: &ServiceNow| {
        let counts = &service.counts;
        let claims = counts.claims_own
            + counts.claims_handoff
            + counts.claims_silent
            + counts.claims_context_lost
            + counts.claims_dependency;
        let lost = counts.claims_context_lost.saturating_mul(CONTEXT_LOST_ONE_IN) > claims;
        match &*service.facts.mode {
            "enforce" if lost => Coverage::ContextLost,
            "enforce" if service.facts.enforce_percent == 100 => Coverage::Enforcing,
            "enforce" | "observe" => Coverage::Observing,
            _ => Coverage::NonCooperative,
        }
    };
    services.iter().map(|(&name, service)| (name, of(service))).collect()
}
