//! The procedures of this service: found by key, bounded, never evicted.

use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;
use onus_learn::CleanCounts;

use crate::counters::{Counter, ProcedureCounters};
use crate::edges::lock;
use crate::symbols::Procedure;

/// A procedure of this service.
#[derive(Debug)]
pub(crate) struct ServedProcedure {
    pub(crate) procedure: Procedure,
    pub(crate) counters: ProcedureCounters,
    /// What learning has taken in of the requests without a failed call.
    learned: Mutex<CleanCounts>,
}

impl ServedProcedure {
    fn new(procedure: Procedure) -> Self {
        Self { procedure, counters: ProcedureCounters::default(), learned: Mutex::default() }
    }

    /// The requests without a failed call since the last time this was asked.
    pub(crate) fn clean_since_last(&self) -> CleanCounts {
        let total = self.counters.clean_counts();
        let before = std::mem::replace(&mut *lock(&self.learned), total);
        CleanCounts {
            clean: total.clean - before.clean,
            clean_failed: total.clean_failed - before.clean_failed,
        }
    }
}

/// All procedures of this service.
#[derive(Debug)]
pub(crate) struct ProcedureTable {
    procedures: papaya::HashMap<Procedure, Arc<ServedProcedure>, RandomState>,
    limit: usize,
    /// What further procedures share.
    other: Arc<ServedProcedure>,
    /// Requests that had to share a procedure because the table is full.
    pub(crate) overflows: Counter,
}

impl ProcedureTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            procedures: papaya::HashMap::with_hasher(RandomState::default()),
            limit,
            other: Arc::new(ServedProcedure::new(Procedure::OTHER)),
            overflows: Counter::default(),
        }
    }

    pub(crate) fn find(&self, procedure: Procedure) -> Arc<ServedProcedure> {
        let procedures = self.procedures.pin();
        if let Some(known) = procedures.get(&procedure) {
            return known.clone();
        }
        // Threads that add at once may pass the limit by one each, which harms nothing.
        if procedures.len() >= self.limit {
            self.overflows.add();
            return self.other.clone();
        }
        let new = || Arc::new(ServedProcedure::new(procedure));
        procedures.get_or_insert_with(procedure, new).clone()
    }

    /// Every procedure, in an order that stays.
    pub(crate) fn sorted(&self) -> Vec<Arc<ServedProcedure>> {
        let pinned = self.procedures.pin();
        let mut all: Vec<_> = pinned.values().cloned().collect();
        all.sort_unstable_by_key(|served| served.procedure);
        all.push(self.other.clone());
        all
    }

    /// Calls `each` for every procedure.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&ServedProcedure)) {
        for served in self.procedures.pin().values() {
            each(served);
        }
        each(&self.other);
    }
}
