//! The edges of a service: found by key, bounded, never evicted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use onus_core::{Brake, BrakeEvent, EdgeClass, EdgeId, EdgePolicy, EdgeState, Timestamp};
use onus_learn::{ClassFinding, Declared, Estimator};

use crate::counters::{Counter, EdgeCounters};
use crate::drain::{Drained, Tally};
use crate::given::{GivenClass, Learning};
use crate::policy::Timeouts;
use crate::rules::{CalleeRules, EdgeRules};
use crate::symbols::{Procedure, Symbol, Symbols};
use crate::totals::EdgeName;

/// Which edge: a procedure of this service calls a procedure of a callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EdgeKey {
    pub(crate) caller: Procedure,
    pub(crate) callee: Symbol,
    pub(crate) procedure: Procedure,
}

impl EdgeKey {
    pub(crate) fn name(self, symbols: &Symbols) -> EdgeName {
        EdgeName {
            caller: self.caller.display(symbols).to_string(),
            callee: symbols.name(self.callee).clone(),
            procedure: self.procedure.display(symbols).to_string(),
        }
    }
}

/// An edge of this service: what was configured for it, and what lasts whatever is configured.
#[derive(Debug)]
pub struct Edge {
    pub(crate) id: EdgeId,
    pub(crate) key: EdgeKey,
    pub(crate) policy: EdgePolicy,
    pub(crate) timeouts: Timeouts,
    declared: Declared,
    pub(crate) lasting: Arc<Lasting>,
}

/// What of an edge lasts when it is configured anew.
#[derive(Debug)]
pub(crate) struct Lasting {
    pub(crate) tally: Tally,
    pub(crate) counters: EdgeCounters,
    /// When the edge was first used.
    pub(crate) since: Timestamp,
    /// How often the brake halved the enforce share.
    pub(crate) halvings: AtomicU8,
    /// Whether a layer below was seen to retry that nobody declared.
    pub(crate) foreign: AtomicBool,
    class: AtomicU8,
    /// When the budget was last told of the calls, in nanoseconds.
    drained_at: AtomicU64,
    memory: Mutex<Memory>,
    learning: Mutex<Learning>,
}

/// What a minute has taught about an edge.
#[derive(Debug)]
pub(crate) struct Learned {
    pub(crate) finding: ClassFinding,
    /// Whether the class that decisions use is another one now.
    pub(crate) class_changed: bool,
    /// Whether what was said about the edge is contradicted for the first time.
    pub(crate) contradicted: bool,
}

/// What an edge remembers between calls; locked on failure and once a second.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) state: EdgeState,
    drained: Drained,
}

const DRAIN_INTERVAL: Duration = Duration::from_secs(1);

impl Edge {
    fn new(
        id: EdgeId,
        key: EdgeKey,
        rules: &CalleeRules,
        procedure: &str,
        given: Option<GivenClass>,
        now: Timestamp,
    ) -> Self {
        let policy = rules.of(procedure).policy;
        let lasting = Lasting {
            tally: Tally::default(),
            counters: EdgeCounters::default(),
            since: now,
            halvings: AtomicU8::new(0),
            foreign: AtomicBool::new(false),
            class: AtomicU8::new(class_to_byte(EdgeClass::Unknown)),
            drained_at: AtomicU64::new(now.as_nanos()),
            memory: Mutex::new(Memory {
                state: EdgeState::new(&policy),
                drained: Drained::default(),
            }),
            learning: Mutex::new(Learning::new(given, now)),
        };
        Self::under(id, key, rules, procedure, Arc::new(lasting), now)
    }

    /// The edge with these rules, and with what has lasted of it.
    fn under(
        id: EdgeId,
        key: EdgeKey,
        rules: &CalleeRules,
        procedure: &str,
        lasting: Arc<Lasting>,
        now: Timestamp,
    ) -> Self {
        let EdgeRules { policy, timeouts, .. } = rules.of(procedure);
        let declared = Declared { operator: rules.class_override, annotation: rules.annotation };
        let class = lock(&lasting.learning).finding(declared, now).class;
        lasting.class.store(class_to_byte(class), Ordering::Relaxed);
        Self { id, key, policy, timeouts, declared, lasting }
    }

    /// This edge under other rules; `None` where they say the same. A budget stays as it is unless
    /// it is another one.
    fn reconfigured(&self, rules: &CalleeRules, procedure: &str, now: Timestamp) -> Option<Self> {
        let lasting = self.lasting.clone();
        let edge = Self::under(self.id, self.key, rules, procedure, lasting, now);
        let same = edge.policy == self.policy
            && edge.timeouts == self.timeouts
            && edge.declared == self.declared;
        if same {
            return None;
        }
        let budget = |policy: &EdgePolicy| policy.retry.and_then(|retry| retry.budget);
        if budget(&edge.policy) != budget(&self.policy) {
            let mut memory = lock(&self.lasting.memory);
            memory.state.budget = EdgeState::new(&edge.policy).budget;
            // It is told of what happens from now on.
            memory.drained = Drained::from(&self.lasting.tally);
            self.lasting.drained_at.store(now.as_nanos(), Ordering::Relaxed);
        }
        Some(edge)
    }

    /// The time limits of a call on this edge.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// What was configured for this edge.
    #[must_use]
    pub fn policy(&self) -> &EdgePolicy {
        &self.policy
    }

    /// Whether the edge stands for several that a full table could not keep apart.
    pub(crate) fn is_shared(&self) -> bool {
        let EdgeKey { caller, callee, procedure } = self.key;
        let names = [caller.method, caller.route, callee, procedure.method, procedure.route];
        names.contains(&Symbol::OTHER)
    }

    /// The class that decisions use.
    #[must_use]
    pub fn class(&self) -> EdgeClass {
        class_from_byte(self.lasting.class.load(Ordering::Relaxed))
    }

    /// The class with all that explains it.
    #[must_use]
    pub fn finding(&self, now: Timestamp) -> ClassFinding {
        lock(&self.lasting.learning).finding(self.declared, now)
    }

    /// Updates what this process has learned about the edge; the class follows.
    pub(crate) fn learn(&self, update: impl FnOnce(&mut Estimator), now: Timestamp) -> Learned {
        self.relearn(|learning| update(&mut learning.own), now)
    }

    /// Updates all that the class follows from.
    pub(crate) fn relearn(&self, update: impl FnOnce(&mut Learning), now: Timestamp) -> Learned {
        let mut learning = lock(&self.lasting.learning);
        let before = learning.finding(self.declared, now);
        update(&mut learning);
        let finding = learning.finding(self.declared, now);
        let in_use = self.lasting.class.swap(class_to_byte(finding.class), Ordering::Relaxed);
        Learned {
            class_changed: class_from_byte(in_use) != finding.class,
            contradicted: before.contradiction().is_none() && finding.contradiction().is_some(),
            finding,
        }
    }

    /// The edge's memory, with a budget that knows of every call so far.
    pub(crate) fn memory(&self, now: Timestamp) -> MutexGuard<'_, Memory> {
        let mut memory = lock(&self.lasting.memory);
        self.drain(&mut memory, now);
        memory
    }

    /// Takes over the share that the brake leaves, and what it has to tell.
    pub(crate) fn follow_brake(&self, brake: &mut Brake) -> Option<BrakeEvent> {
        self.lasting.halvings.store(brake.halvings(), Ordering::Relaxed);
        brake.take_event()
    }

    /// Whether the budget was last told of the calls a second ago. Without a drain each second it
    /// would book the calls of minutes as those of an instant.
    pub(crate) fn is_drain_due(&self, now: Timestamp) -> bool {
        let drained_at = Timestamp::from_nanos(self.lasting.drained_at.load(Ordering::Relaxed));
        now.saturating_since(drained_at) >= DRAIN_INTERVAL
    }

    /// Whether there is a budget to be told of calls.
    pub(crate) fn has_budget(&self) -> bool {
        self.policy.retry.is_some()
    }

    /// Counts a call for the budget, if there is one.
    pub(crate) fn count_call(&self) {
        if self.has_budget() {
            self.lasting.tally.call();
        }
    }

    /// Counts a success for the budget, if there is one.
    pub(crate) fn count_success(&self) {
        if self.has_budget() {
            self.lasting.tally.success();
        }
    }

    /// Tells the budget of the calls so far, if nobody else is at it.
    pub(crate) fn drain_if_free(&self, now: Timestamp) {
        let mut memory = match self.lasting.memory.try_lock() {
            Ok(memory) => memory,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.drain(&mut memory, now);
    }

    /// Tells the budget of the calls since the last time.
    ///
    /// Each call that starts looks first whether a second has passed, so what was counted since
    /// then was counted within that second, however long ago it is.
    fn drain(&self, memory: &mut Memory, now: Timestamp) {
        let last =
            Timestamp::from_nanos(self.lasting.drained_at.swap(now.as_nanos(), Ordering::Relaxed));
        if let Some(budget) = &mut memory.state.budget {
            let counted_at = now.min(last.saturating_add(DRAIN_INTERVAL));
            memory.drained.drain(&self.lasting.tally, budget, counted_at);
        }
    }
}

/// Where an edge is found. Most are never configured anew, and a look at what may be replaced costs
/// ten times as much.
#[derive(Debug)]
struct Place {
    first: Arc<Edge>,
    anew: OnceLock<ArcSwap<Edge>>,
}

impl Place {
    fn load(&self) -> Arc<Edge> {
        self.anew.get().map_or_else(|| self.first.clone(), ArcSwap::load_full)
    }

    fn store(&self, edge: Arc<Edge>) {
        self.anew.get_or_init(|| ArcSwap::new(edge.clone())).store(edge);
    }
}

/// All edges of a service.
#[derive(Debug)]
pub(crate) struct EdgeTable {
    ids: papaya::HashMap<EdgeKey, EdgeId, RandomState>,
    /// One place for each edge, filled from the front; read without a lock.
    edges: Box<[OnceLock<Place>]>,
    /// How many places there are for edges that share nothing.
    limit: usize,
    /// How many places are taken; locked while an edge is added.
    len: Mutex<usize>,
    rules: ArcSwap<Vec<CalleeRules>>,
    /// What the analysis has said, also of edges that are not used yet.
    given: Mutex<HashMap<EdgeName, GivenClass>>,
    /// Calls that had to share an edge because the table is full.
    pub(crate) overflows: Counter,
}

impl EdgeTable {
    /// A table for `limit` edges, and one more for each set of rules and all others together, on
    /// which further edges are booked.
    pub(crate) fn new(limit: usize, rules: Vec<CalleeRules>) -> Self {
        let shared = 1 + rules.iter().map(|rules| 1 + rules.own_names().len()).sum::<usize>();
        Self {
            ids: papaya::HashMap::with_hasher(RandomState::default()),
            edges: (0..limit + shared).map(|_| OnceLock::new()).collect(),
            limit,
            len: Mutex::new(0),
            rules: ArcSwap::from_pointee(rules),
            given: Mutex::default(),
            overflows: Counter::default(),
        }
    }

    /// Takes over what the analysis says, instead of what it said before.
    pub(crate) fn give(&self, classes: impl IntoIterator<Item = (EdgeName, GivenClass)>) {
        *lock(&self.given) = classes.into_iter().take(self.edges.len()).collect();
    }

    /// What the analysis has said of an edge.
    pub(crate) fn given(&self, name: &EdgeName) -> Option<GivenClass> {
        lock(&self.given).get(name).copied()
    }

    pub(crate) fn rules(&self) -> Arc<Vec<CalleeRules>> {
        self.rules.load_full()
    }

    pub(crate) fn get(&self, id: EdgeId) -> Option<Arc<Edge>> {
        self.edges.get(id.0 as usize)?.get().map(Place::load)
    }

    /// The edges that exist.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<Edge>> {
        self.edges.iter().map_while(OnceLock::get).map(Place::load)
    }

    /// Takes other rules over, for the edges that exist too. Calls under way keep to theirs.
    pub(crate) fn reconfigure(&self, rules: Vec<CalleeRules>, symbols: &Symbols, now: Timestamp) {
        // No edge is added under the old rules once they are replaced.
        let _len = lock(&self.len);
        self.rules.store(Arc::new(rules));
        let rules = self.rules.load();
        for place in self.edges.iter().map_while(OnceLock::get) {
            let edge = place.load();
            let callee = symbols.name(edge.key.callee);
            let procedure = edge.key.procedure.display(symbols).to_string();
            let unnamed = CalleeRules::new(callee);
            let own = rules.iter().find(|rules| *rules.callee == **callee).unwrap_or(&unnamed);
            if let Some(edge) = edge.reconfigured(own, &procedure, now) {
                place.store(Arc::new(edge));
            }
        }
    }

    pub(crate) fn find(
        &self,
        key: EdgeKey,
        symbols: &Symbols,
        now: impl FnOnce() -> Timestamp,
    ) -> Arc<Edge> {
        if let Some(edge) = self.known(key) {
            return edge;
        }
        if !self.is_full() {
            return self.add(key, symbols, now());
        }
        self.overflows.add();
        let key = self.shared_key(key, symbols);
        self.known(key).unwrap_or_else(|| self.add(key, symbols, now()))
    }

    fn known(&self, key: EdgeKey) -> Option<Arc<Edge>> {
        let id = *self.ids.pin().get(&key)?;
        self.get(id)
    }

    /// Whether only the places of shared edges are left.
    fn is_full(&self) -> bool {
        self.edges[self.limit - 1].get().is_some()
    }

    /// Adds an edge. Each shared key of the first rules has a place; where other rules have more, the
    /// last place is for all of them.
    fn add(&self, key: EdgeKey, symbols: &Symbols, now: Timestamp) -> Arc<Edge> {
        let mut len = lock(&self.len);
        // Another thread may have added it, or taken the last place, since it was not found.
        if let Some(edge) = self.known(key) {
            return edge;
        }
        let key = match self.edges.len() - *len {
            0 | 1 => SHARED,
            _ if self.is_full() => self.shared_key(key, symbols),
            _ => key,
        };
        if let Some(edge) = self.known(key) {
            return edge;
        }
        let id = EdgeId(*len as u32);
        let name = key.name(symbols);
        let unnamed = CalleeRules::new(&name.callee);
        let all = self.rules.load();
        let rules = all.iter().find(|rules| *rules.callee == *name.callee).unwrap_or(&unnamed);
        let given = self.given(&name);
        let edge = Arc::new(Edge::new(id, key, rules, &name.procedure, given, now));
        self.edges[*len].get_or_init(|| Place { first: edge.clone(), anew: OnceLock::new() });
        self.ids.pin().insert(key, id);
        *len += 1;
        edge
    }

    /// The edge that stands for this one where there is no room: one for each set of rules, so
    /// that no call is retried under the rules of another.
    fn shared_key(&self, key: EdgeKey, symbols: &Symbols) -> EdgeKey {
        let callee = symbols.name(key.callee);
        let shared = |callee, procedure| EdgeKey { caller: Procedure::OTHER, callee, procedure };
        let all = self.rules.load();
        let Some(rules) = all.iter().find(|rules| *rules.callee == **callee) else {
            return SHARED;
        };
        let procedure = match rules.own_name(&key.procedure.display(symbols).to_string()) {
            None => Procedure::OTHER,
            Some(method) if *method == **symbols.name(key.procedure.method) => {
                Procedure { route: Symbol::OTHER, ..key.procedure }
            }
            Some(_) => key.procedure,
        };
        shared(key.callee, procedure)
    }
}

/// What edges share that nothing else stands for.
const SHARED: EdgeKey =
    EdgeKey { caller: Procedure::OTHER, callee: Symbol::OTHER, procedure: Procedure::OTHER };

/// Locks, whatever a panic left behind: the states under these locks are plain data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn class_to_byte(class: EdgeClass) -> u8 {
    match class {
        EdgeClass::Unknown => 0,
        EdgeClass::FailClose => 1,
        EdgeClass::FailOpen => 2,
    }
}

fn class_from_byte(byte: u8) -> EdgeClass {
    match byte {
        1 => EdgeClass::FailClose,
        2 => EdgeClass::FailOpen,
        _ => EdgeClass::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use onus_core::RetryPolicy;

    use super::*;

    fn edge() -> Edge {
        let mut rules = CalleeRules::new("b");
        rules.all.policy.retry = RetryPolicy::articles(2);
        let key =
            EdgeKey { caller: Procedure::NONE, callee: Symbol::OTHER, procedure: Procedure::NONE };
        Edge::new(EdgeId(0), key, &rules, "GET", None, Timestamp::ZERO)
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn every_class_survives_its_byte() {
        for class in [EdgeClass::FailClose, EdgeClass::FailOpen, EdgeClass::Unknown] {
            assert_eq!(class_from_byte(class_to_byte(class)), class);
        }
    }

    #[test]
    fn what_a_panic_left_locked_is_used_as_it_is() {
        // [fault-1]
        let edge = edge();
        let panics = |broken: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(broken)).is_err());
        panics(&|| {
            let _memory = edge.memory(at(0));
            panic!("in a decision");
        });
        panics(&|| {
            edge.learn(|_| panic!("in learning"), at(0));
        });
        let balance = |now| edge.memory(now).state.budget.as_ref().unwrap().balance(now);
        assert_eq!(balance(at(0)), 1);
        for _ in 0..100 {
            edge.lasting.tally.call();
        }
        assert!(edge.is_drain_due(at(1)));
        edge.drain_if_free(at(1));
        assert!(!edge.is_drain_due(at(1)), "it was drained");
        assert_eq!(balance(at(1)), 11);
        assert_eq!(edge.finding(at(1)).class, EdgeClass::Unknown);
        assert!(!edge.learn(|_| {}, at(1)).class_changed);
    }
}
