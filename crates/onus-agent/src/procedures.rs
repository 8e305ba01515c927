//! The procedures of this service: found by key, bounded, never evicted.

use std::sync::{Mutex, OnceLock};

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
    /// What learning has taken in of the requests that blame no call.
    learned: Mutex<CleanCounts>,
}

impl ServedProcedure {
    fn new(procedure: Procedure) -> Self {
        Self { procedure, counters: ProcedureCounters::default(), learned: Mutex::default() }
    }

    /// The requests that blame no call since the last time this was asked.
    pub(crate) fn clean_since_last(&self) -> CleanCounts {
        let total = self.counters.clean_counts();
        let before = std::mem::replace(&mut *lock(&self.learned), total);
        CleanCounts {
            clean: total.clean - before.clean,
            clean_failed: total.clean_failed - before.clean_failed,
        }
    }
}

/// The place of a procedure in the [`ProcedureTable`]. A request holds this and no reference count:
/// all requests of a procedure would contend for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcedureId(u32);

/// All procedures of this service.
#[derive(Debug)]
pub(crate) struct ProcedureTable {
    ids: papaya::HashMap<Procedure, ProcedureId, RandomState>,
    /// One place for each procedure, filled from the front; read without a lock.
    procedures: Box<[OnceLock<Box<ServedProcedure>>]>,
    /// How many places are taken; locked while a procedure is added.
    len: Mutex<usize>,
    /// What further procedures share.
    other: ServedProcedure,
    /// Requests that had to share a procedure because the table is full.
    pub(crate) overflows: Counter,
}

impl ProcedureTable {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            ids: papaya::HashMap::with_hasher(RandomState::default()),
            procedures: (0..limit).map(|_| OnceLock::new()).collect(),
            len: Mutex::new(0),
            other: ServedProcedure::new(Procedure::OTHER),
            overflows: Counter::default(),
        }
    }

    #[inline]
    pub(crate) fn find(&self, procedure: Procedure) -> ProcedureId {
        match self.ids.pin().get(&procedure) {
            Some(&known) => known,
            None => self.add(procedure),
        }
    }

    /// The procedure in this place; what further procedures share where there is none.
    pub(crate) fn get(&self, ProcedureId(place): ProcedureId) -> &ServedProcedure {
        let procedure = self.procedures.get(place as usize).and_then(OnceLock::get);
        procedure.map_or(&self.other, |procedure| procedure)
    }

    /// Every procedure, in an order that stays.
    pub(crate) fn sorted(&self) -> Vec<&ServedProcedure> {
        let mut all: Vec<_> = self.own().collect();
        all.sort_unstable_by_key(|served| served.procedure);
        all.push(&self.other);
        all
    }

    /// Every procedure.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ServedProcedure> {
        self.own().chain([&self.other])
    }

    fn own(&self) -> impl Iterator<Item = &ServedProcedure> {
        self.procedures.iter().map_while(OnceLock::get).map(|procedure| &**procedure)
    }

    #[cold]
    fn add(&self, procedure: Procedure) -> ProcedureId {
        // Looked at before the lock: whoever makes up names must not stop the others.
        if self.procedures.last().is_none_or(|last| last.get().is_some()) {
            return self.overflow();
        }
        let mut len = lock(&self.len);
        let ids = self.ids.pin();
        // Another thread may have added it, or taken the last place, since it was not found.
        if let Some(&known) = ids.get(&procedure) {
            return known;
        }
        let Some(place) = self.procedures.get(*len) else { return self.overflow() };
        place.get_or_init(|| Box::new(ServedProcedure::new(procedure)));
        let id = ProcedureId(*len as u32);
        // The procedure is in place before anyone can find its number.
        ids.insert(procedure, id);
        *len += 1;
        id
    }

    fn overflow(&self) -> ProcedureId {
        self.overflows.add();
        ProcedureId(u32::MAX)
    }
}
