//! The state: a fold over reports. What it is fed it counts once, by the numbers of the reports;
//! it does no I/O and takes the time as an argument.

mod rows;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onus_api::{
    EdgeCounts, EdgeDelta, OTHER, ProcedureCounts, ProcedureDelta, Report, ServiceFacts,
};
use onus_core::EdgeClass;
use onus_learn::{CleanCounts, Declared};

pub(crate) use self::rows::{EdgeKey, EdgeRow, InstanceRow, ProcedureKey, ProcedureRow};
use crate::clock::Millis;
use crate::config::Limits;
use crate::names::{Name, Names, clean};
use crate::orders::{Change, Said};
use crate::promql::INSTANCE;
use crate::window::{WindowKey, Windows};

type Map<K, V> = HashMap<K, V, RandomState>;

/// All that reports have told.
#[derive(Debug)]
pub(crate) struct Book {
    limits: Limits,
    pub(crate) names: Names,
    edges: Vec<Option<EdgeRow>>,
    /// Places of edges that were forgotten; taken before new ones are made.
    free: Vec<u32>,
    /// Places that were freed and are not freed on disk yet.
    freed: Vec<u32>,
    edge_ids: Map<EdgeKey, u32>,
    procedures: Vec<ProcedureRow>,
    procedure_ids: Map<ProcedureKey, u32>,
    instances: Map<(Name, Arc<str>), InstanceRow>,
    services: Map<Name, ServiceRow>,
    /// Minutes that are not on disk yet.
    pub(crate) windows: Windows,
    /// When counts last became evidence, and when before that.
    pub(crate) ticks: [Millis; 2],
    pub(crate) noticed: Noticed,
    pub(crate) said: Said,
}

/// What is known of a service.
#[derive(Debug, Default)]
pub(crate) struct ServiceRow {
    /// The edges that it calls.
    pub(crate) edges: Vec<u32>,
    /// The procedures that it serves.
    pub(crate) procedures: Vec<u32>,
    /// Changes when what its agents are told does.
    pub(crate) version: u64,
}

/// What was not as it should be, since the process started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noticed {
    /// Edges and procedures of reports that found no room of their own.
    pub(crate) overflows: u64,
    /// Names that were hostile or too long.
    pub(crate) replaced_names: u64,
    /// Reports whose number shows that one before them never came.
    pub(crate) lost_reports: u64,
    /// Processes that were forgotten to make room.
    pub(crate) forgotten_instances: u64,
}

/// Whether a report is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It has not been counted.
    New {
        /// Reports of the process that were left out since the one before.
        lost: u64,
    },
    /// It has been counted.
    Repeated,
}

impl Book {
    pub(crate) fn new(limits: Limits, now: Millis) -> Self {
        Self {
            limits,
            names: Names::default(),
            edges: Vec::new(),
            free: Vec::new(),
            freed: Vec::new(),
            edge_ids: Map::default(),
            procedures: Vec::new(),
            procedure_ids: Map::default(),
            instances: Map::default(),
            services: Map::default(),
            windows: Windows::default(),
            ticks: [now; 2],
            noticed: Noticed::default(),
            said: Said::default(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The number of the last report of this process, and how many of its reports never came.
    pub(crate) fn standing(&self, service: &str, instance: &str) -> Option<(u64, u64)> {
        let service = self.names.find(service)?;
        let row = self.instances.get(&(service, instance.into()))?;
        Some((row.sequence, row.lost))
    }

    /// Counts a report, unless it has been counted.
    pub(crate) fn apply(&mut self, report: &Report, arrived: Millis) -> Arrival {
        let service = self.names.intern(&report.service);
        let arrival = self.note_instance(service, report, arrived);
        if arrival == Arrival::Repeated {
            return arrival;
        }
        let minute = window_minute(Millis(report.at), arrived);
        for delta in &report.edges {
            let edge = self.edge_for(service, delta, arrived);
            let Some(row) = self.edges[edge as usize].as_mut() else { continue };
            row.counts = row.counts.plus(delta.counts);
            row.policy = delta.policy;
            row.seen = arrived;
            row.dirty = true;
            if delta.counts.calls_failed > 0 {
                row.failing.get_or_insert(arrived);
            }
            let window = self.windows.entry(WindowKey { minute, edge }).or_default();
            *window = window.plus(delta.counts);
        }
        for delta in &report.procedures {
            let at = self.procedure_for(service, delta);
            let row = &mut self.procedures[at as usize];
            row.counts = row.counts.plus(delta.counts);
            row.dirty = true;
            if delta.counts.claims_own > 0 {
                row.failing.get_or_insert(arrived);
            }
        }
        arrival
    }

    fn note_instance(&mut self, service: Name, report: &Report, arrived: Millis) -> Arrival {
        let key = (service, Arc::from(&*report.instance));
        let before = self.instances.get(&key).map_or(0, |row| row.sequence);
        if report.sequence <= before {
            return Arrival::Repeated;
        }
        // The numbers of a PromQL store are those of minutes.
        let lost = if report.instance == INSTANCE { 0 } else { report.sequence - before - 1 };
        self.noticed.lost_reports = self.noticed.lost_reports.saturating_add(lost);
        if before == 0 {
            self.make_room_for_instance();
        }
        let row = self.instances.entry(key).or_insert_with(|| InstanceRow::new(service));
        row.sequence = report.sequence;
        row.lost = row.lost.saturating_add(lost);
        row.seen = arrived;
        row.facts = kept_facts(&report.facts);
        row.dirty = true;
        self.services.entry(service).or_default();
        Arrival::New { lost }
    }

    /// Forgets the hundredth of the processes that were silent longest, if there is no room.
    fn make_room_for_instance(&mut self) {
        if self.instances.len() < self.limits.instances {
            return;
        }
        let mut seen: Vec<_> =
            self.instances.iter().map(|(key, row)| (row.seen, key.clone())).collect();
        let some = seen.len() / 100;
        seen.select_nth_unstable_by_key(some, |(seen, _)| *seen);
        seen.truncate(some + 1);
        for (_, key) in seen {
            self.instances.remove(&key);
            self.noticed.forgotten_instances += 1;
        }
    }

    fn edge_for(&mut self, caller: Name, delta: &EdgeDelta, now: Millis) -> u32 {
        let given = [&*delta.caller_procedure, &*delta.callee, &*delta.procedure];
        let names = given.map(clean);
        self.noticed.replaced_names += replaced(&given, &names);
        if let [Some(caller_procedure), Some(callee), Some(procedure)] =
            names.map(|name| self.names.find(name))
        {
            let key = EdgeKey { caller, caller_procedure, callee, procedure };
            if let Some(&known) = self.edge_ids.get(&key) {
                return known;
            }
        }
        let own = self.services.get(&caller).map_or(0, |service| service.edges.len());
        let full = self.edge_ids.len() >= self.limits.edges || own >= self.limits.edges_per_service;
        let [caller_procedure, callee, procedure] =
            if full { [OTHER; 3] } else { names }.map(|name| self.names.intern(name));
        if full {
            self.noticed.overflows += 1;
        }
        let key = EdgeKey { caller, caller_procedure, callee, procedure };
        match self.edge_ids.get(&key) {
            Some(&known) => known,
            None => self.add_edge(EdgeRow::new(key, now)),
        }
    }

    fn add_edge(&mut self, row: EdgeRow) -> u32 {
        let id = self.free.pop().unwrap_or(self.edges.len() as u32);
        self.freed.retain(|&freed| freed != id);
        self.place(id, row);
        id
    }

    /// Puts a row in its place, as one that was read from disk.
    pub(crate) fn put_edge(&mut self, id: u32, row: EdgeRow) {
        self.free.extend(self.edges.len() as u32..id);
        self.place(id, row);
    }

    fn place(&mut self, id: u32, row: EdgeRow) {
        self.edge_ids.insert(row.key, id);
        self.services.entry(row.key.caller).or_default().edges.push(id);
        if self.edges.len() <= id as usize {
            self.edges.resize_with(id as usize + 1, || None);
        }
        self.edges[id as usize] = Some(row);
    }

    /// Forgets edges that nobody has reported for long.
    fn forget_silent_edges(&mut self, now: Millis) {
        let silent = u64::try_from(self.limits.silent_edges.as_millis()).unwrap_or(u64::MAX);
        for (id, place) in (0_u32..).zip(&mut self.edges) {
            let over = |row: &mut EdgeRow| now.saturating_sub(row.seen) > silent;
            let Some(row) = place.take_if(over) else { continue };
            self.edge_ids.remove(&row.key);
            if let Some(service) = self.services.get_mut(&row.key.caller) {
                service.edges.retain(|&edge| edge != id);
                service.version += 1;
            }
            self.free.push(id);
            self.freed.push(id);
        }
    }

    fn procedure_for(&mut self, service: Name, delta: &ProcedureDelta) -> u32 {
        let name = clean(&delta.procedure);
        self.noticed.replaced_names += replaced(&[&delta.procedure], &[name]);
        if let Some(procedure) = self.names.find(name)
            && let Some(&known) = self.procedure_ids.get(&ProcedureKey { service, procedure })
        {
            return known;
        }
        let own = self.services.get(&service).map_or(0, |service| service.procedures.len());
        // A service serves no more procedures than it has edges kept apart.
        let full =
            self.procedures.len() >= self.limits.edges || own >= self.limits.edges_per_service;
        if full {
            self.noticed.overflows += 1;
        }
        let procedure = self.names.intern(if full { OTHER } else { name });
        let key = ProcedureKey { service, procedure };
        match self.procedure_ids.get(&key) {
            Some(&known) => known,
            None => self.add_procedure(ProcedureRow::new(key)),
        }
    }

    /// Adds a row, as one that was read from disk.
    pub(crate) fn add_procedure(&mut self, row: ProcedureRow) -> u32 {
        let id = self.procedures.len() as u32;
        self.procedure_ids.insert(row.key, id);
        self.services.entry(row.key.service).or_default().procedures.push(id);
        self.procedures.push(row);
        id
    }

    /// Adds a row, as one that was read from disk.
    pub(crate) fn add_instance(&mut self, instance: Arc<str>, row: InstanceRow) {
        self.services.entry(row.service).or_default();
        self.instances.insert((row.service, instance), row);
    }

    /// A minute is over: its counts become evidence. Whether agents have to be told of a class.
    pub(crate) fn tick(&mut self, now: Millis) -> bool {
        let mut callers = HashMap::with_capacity(self.procedures.len());
        for row in &mut self.procedures {
            let minute = row.end_minute();
            let clean = CleanCounts {
                clean: minute.clean_ok.saturating_add(minute.clean_failed),
                clean_failed: minute.clean_failed,
            };
            callers.insert(row.key, clean);
        }
        let other = self.names.find(OTHER);
        let mut any = false;
        self.forget_silent_edges(now);
        for row in self.edges.iter_mut().flatten() {
            let minute = row.end_minute();
            let key = row.key;
            // Failures that one part survives say nothing of the others.
            if [key.caller_procedure, key.callee, key.procedure].iter().any(|&it| Some(it) == other)
            {
                continue;
            }
            let caller = ProcedureKey { service: key.caller, procedure: key.caller_procedure };
            let clean = callers.get(&caller).copied().unwrap_or_default();
            let held = self.said.overrides.word(key, now).map(|word| word.class);
            let changed = row.learn(&minute, clean, held, now);
            if changed && let Some(service) = self.services.get_mut(&key.caller) {
                service.version += 1;
                any = true;
            }
        }
        self.ticks = [now, self.ticks[0]];
        any
    }

    /// Everything is on disk.
    pub(crate) fn checkpointed(&mut self) {
        self.windows.clear();
        self.freed.clear();
        self.edges.iter_mut().flatten().for_each(|row| row.dirty = false);
        self.procedures.iter_mut().for_each(|row| row.dirty = false);
        self.instances.values_mut().for_each(|row| row.dirty = false);
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = &EdgeRow> {
        self.edges.iter().flatten()
    }

    pub(crate) fn edges_by_id(&self) -> impl Iterator<Item = (u32, &EdgeRow)> {
        (0_u32..).zip(&self.edges).filter_map(|(id, row)| Some((id, row.as_ref()?)))
    }

    pub(crate) fn edge(&self, id: u32) -> Option<&EdgeRow> {
        self.edges.get(id as usize)?.as_ref()
    }

    /// Places that were freed since the last checkpoint.
    pub(crate) fn freed(&self) -> &[u32] {
        &self.freed
    }

    /// How many edges are remembered.
    pub(crate) fn edge_count(&self) -> usize {
        self.edge_ids.len()
    }

    /// Whether reports of this service find room.
    pub(crate) fn has_room_for(&self, service: &str) -> bool {
        self.services.len() < self.limits.instances || self.service(service).is_some()
    }

    pub(crate) fn procedures(&self) -> &[ProcedureRow] {
        &self.procedures
    }

    pub(crate) fn instances(&self) -> impl Iterator<Item = (&Arc<str>, &InstanceRow)> {
        self.instances.iter().map(|((_, instance), row)| (instance, row))
    }

    /// The last minute that was read back from a PromQL store; 0 for none.
    pub(crate) fn last_promql_minute(&self) -> u64 {
        let minutes = self.instances().filter(|(instance, _)| &***instance == INSTANCE);
        minutes.map(|(_, row)| row.sequence).max().unwrap_or(0)
    }

    pub(crate) fn service(&self, name: &str) -> Option<&ServiceRow> {
        self.services.get(&self.names.find(name)?)
    }

    pub(crate) fn service_names(&self) -> impl Iterator<Item = &str> {
        self.services.keys().map(|&service| &**self.names.name(service))
    }

    /// Takes over what operators change.
    pub(crate) fn change(&mut self, changes: &[Change]) {
        for change in changes {
            if let Some(service) = self.said.change(change) {
                let service = self.names.intern(&service);
                self.services.entry(service).or_default().version += 1;
            }
        }
        let names = &mut self.names;
        self.said.overrides.index(|name| Some(names.intern(name)));
    }

    /// What people have said of an edge.
    pub(crate) fn declared(&self, row: &EdgeRow, now: Millis) -> Declared {
        let word = self.said.overrides.word(row.key, now);
        Declared { operator: word.map(|word| word.class), annotation: None }
    }

    /// The class that agents are told.
    pub(crate) fn class(&self, row: &EdgeRow, now: Millis) -> EdgeClass {
        let learned = row.told.class.edge_class();
        self.said.overrides.word(row.key, now).map_or(learned, |word| word.class)
    }

    /// What was counted on an edge since the tick before the last one, and for how long.
    pub(crate) fn recent(&self, row: &EdgeRow, now: Millis) -> (EdgeCounts, f64) {
        let counts = row.counts.since(row.at_tick).plus(row.last_minute());
        (counts, self.recent_seconds(now))
    }

    pub(crate) fn recent_seconds(&self, now: Millis) -> f64 {
        (now.saturating_sub(self.ticks[1]) as f64 / 1000.0).max(1.0)
    }
}

fn replaced(given: &[&str], kept: &[&str]) -> u64 {
    given.iter().zip(kept).filter(|(given, kept)| given != kept).count() as u64
}

/// Clocks of agents may be wrong, which moves a window by some minutes and no further.
fn window_minute(at: Millis, arrived: Millis) -> u32 {
    const SKEW: u32 = 10;
    let arrived = arrived.minute();
    at.minute().clamp(arrived.saturating_sub(SKEW), arrived + 1)
}

/// Facts with texts of a length that is worth keeping.
fn kept_facts(facts: &ServiceFacts) -> ServiceFacts {
    let short = |text: &str| clean(text).chars().take(32).collect();
    ServiceFacts { mode: short(&facts.mode), version: short(&facts.version), ..facts.clone() }
}

impl ProcedureRow {
    fn end_minute(&mut self) -> ProcedureCounts {
        let minute = self.counts.since(self.at_tick);
        self.dirty |= !minute.is_zero();
        self.last = minute;
        self.at_tick = self.counts;
        if minute.claims_own == 0 {
            self.dirty |= self.failing.take().is_some();
        }
        minute
    }
}

#[cfg(test)]
mod tests;
