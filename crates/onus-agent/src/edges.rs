//! The edges of a service: what is decided, counted and learnt on each.

mod table;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use onus_core::{Brake, BrakeEvent, EdgeClass, EdgeId, EdgePolicy, EdgeState, Timestamp};
use onus_learn::{ClassFinding, Declared, Estimator};

use crate::counters::EdgeCounters;
use crate::drain::{Drained, Tally};
use crate::given::{GivenClass, Learning};
use crate::policy::Timeouts;
use crate::rules::{CalleeRules, EdgeRules};
use crate::symbols::{Procedure, Symbol, Symbols};
use crate::totals::EdgeName;

pub(crate) use self::table::EdgeTable;

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
