//! Which inbound request an outbound call belongs to, where no task context tells (protocol §5).
//!
//! A request is filed under a token, which the application hands on in `tracestate`, and under
//! ids that its calls may carry too. The token is certain. An id is only while one live request
//! has it, and none that was cancelled a short time ago: a retry carries the ids of the attempt
//! before it, and a late call of that attempt must not be booked on its successor.
//!
//! One mutex guards everything. What is done under it is a few dozen nanoseconds of table look-up
//! (hashing and dropping values happen outside), so that a process which serves 100,000 requests
//! a second holds it for a few percent of the time; shards would cost each request one more lock
//! per id, since an id and its token lie in different shards.

mod ids;
mod slab;
mod token;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onus_core::Timestamp;

use self::ids::{FoundId, IdHash, IdTable};
use self::slab::Slab;
pub use self::token::Token;

/// The live inbound requests of a process, by token and by id. `T` is what stands for a request.
///
/// A live request never expires; its host closes it. Whatever is full costs no request: calls
/// that are not found are context-lost.
pub struct Correlator<T> {
    /// Strangers choose the ids, so the hash is keyed and each process has its own keys.
    hasher: RandomState,
    state: Mutex<State<T>>,
}

/// How much a [`Correlator`] remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most live requests.
    pub live: usize,
    /// The most ids of live requests and of cancelled ones that linger. While a live request has
    /// ids beyond this, no call is found by id.
    pub ids: usize,
    /// For how long an id is ambiguous after a request with it was cancelled.
    pub linger: Duration,
}

impl Default for Limits {
    /// 65,536 live requests, four ids each, ten seconds: longer than the wait before a retry and
    /// most timeouts of an attempt.
    fn default() -> Self {
        Self { live: 65_536, ids: 4 * 65_536, linger: Duration::from_secs(10) }
    }
}

/// What an id leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// The one request that has it.
    One(T),
    /// Several requests have it, or one that was cancelled a short time ago had it, or the table
    /// of ids is over full.
    Ambiguous,
    /// No request has it.
    Unknown,
}

/// How full a [`Correlator`] is, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Requests that are live.
    pub live: usize,
    /// Ids of live requests and of cancelled ones that linger.
    pub ids: usize,
    /// Requests that found no room.
    pub refused: u64,
    /// Requests with an id that found no room.
    pub unlisted: u64,
}

/// The most ids of one request; a request with more is as one that finds no room for them.
pub const IDS_PER_REQUEST: usize = 4;

struct State<T> {
    requests: Slab<Request<T>>,
    ids: IdTable,
    refused: u64,
    unlisted: u64,
}

struct Request<T> {
    value: T,
    ids: RequestIds,
}

/// The ids of one request, hashed.
#[derive(Clone, Copy, Default)]
struct RequestIds {
    listed: [IdHash; IDS_PER_REQUEST],
    len: u8,
    /// Whether some id is not listed, which makes every id of the process uncertain.
    incomplete: bool,
}

impl<T: Clone> Correlator<T> {
    /// An empty correlator. `seed` are random bits, so that a token of an earlier process finds
    /// nothing.
    #[must_use]
    pub fn new(limits: Limits, seed: u64) -> Self {
        let state = State {
            requests: Slab::new(limits.live, (seed ^ (seed >> 32)) as u32),
            ids: IdTable::new(limits.ids, limits.linger),
            refused: 0,
            unlisted: 0,
        };
        Self { hasher: RandomState::new(), state: Mutex::new(state) }
    }

    /// Files a live request. `None` when there is no room: its calls are context-lost, and it is
    /// counted.
    pub fn open<'a>(
        &self,
        ids: impl Iterator<Item = &'a [u8]>,
        value: T,
        now: Timestamp,
    ) -> Option<Token> {
        let mut hashed = RequestIds::default();
        for id in ids {
            hashed.push(self.hasher.hash_one(id));
        }
        let mut state = self.lock();
        state.ids.advance(now);
        // A value that finds no room is dropped after the lock.
        match state.requests.insert(Request { value, ids: hashed }) {
            Ok(token) => {
                state.list(token, hashed);
                Some(token)
            }
            Err(_value) => {
                state.refused += 1;
                drop(state);
                None
            }
        }
    }

    /// The live request with this token.
    #[must_use]
    pub fn find(&self, token: Token) -> Option<T> {
        self.lock().requests.get(token).map(|request| request.value.clone())
    }

    /// The live request with this id, if that is certain at the time of the last
    /// [`Self::open`] or [`Self::close`].
    #[must_use]
    pub fn find_by_id(&self, id: &[u8]) -> Found<T> {
        let id = self.hasher.hash_one(id);
        let state = self.lock();
        match state.ids.find(id) {
            FoundId::One(token) => state
                .requests
                .get(token)
                .map_or(Found::Unknown, |request| Found::One(request.value.clone())),
            FoundId::Ambiguous => Found::Ambiguous,
            FoundId::Unknown => Found::Unknown,
        }
    }

    /// Forgets a request that is over. If it was `cancelled`, its ids stay ambiguous for the
    /// linger time. A token that is not live changes nothing.
    pub fn close(&self, token: Token, cancelled: bool, now: Timestamp) {
        let mut state = self.lock();
        state.ids.advance(now);
        let closed = state.requests.remove(token);
        if let Some(request) = &closed {
            state.ids.remove(token, request.ids.listed(), cancelled);
            if request.ids.incomplete {
                state.ids.remove_unlisted(cancelled);
            }
        }
        // The value may run any code when it is dropped, this correlator's too.
        drop(state);
        drop(closed);
    }

    /// Forgets what has lingered long enough. Each request does some of it; where none comes any
    /// more, whoever looks at the tables does all.
    pub fn forget(&self, now: Timestamp) {
        self.lock().ids.forget(now);
    }

    /// How full the tables are.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        let state = self.lock();
        Occupancy {
            live: state.requests.len(),
            ids: state.ids.len(),
            refused: state.refused,
            unlisted: state.unlisted,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Enters the ids of a request that has just got `token`.
    fn list(&mut self, token: Token, hashed: RequestIds) {
        let mut ids = RequestIds { len: 0, ..hashed };
        for &id in hashed.listed() {
            if self.ids.insert(token, id) {
                ids.push(id);
            } else {
                ids.incomplete = true;
            }
        }
        if ids.incomplete {
            self.ids.add_unlisted();
            self.unlisted += 1;
            if let Some(request) = self.requests.get_mut(token) {
                request.ids = ids;
            }
        }
    }
}

impl RequestIds {
    fn push(&mut self, id: IdHash) {
        if self.listed().contains(&id) {
            return;
        }
        match self.listed.get_mut(usize::from(self.len)) {
            Some(free) => {
                *free = id;
                self.len += 1;
            }
            None => self.incomplete = true,
        }
    }

    fn listed(&self) -> &[IdHash] {
        &self.listed[..usize::from(self.len)]
    }
}

impl<T> fmt::Debug for Correlator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Correlator").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
