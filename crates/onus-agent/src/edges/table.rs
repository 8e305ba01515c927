//! All edges of a service: found by key, bounded, never evicted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use onus_core::{EdgeId, Timestamp};

use super::{Edge, EdgeKey, lock};
use crate::counters::Counter;
use crate::given::GivenClass;
use crate::rules::CalleeRules;
use crate::symbols::{Procedure, Symbol, Symbols};
use crate::totals::EdgeName;

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
