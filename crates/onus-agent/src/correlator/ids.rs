//! Ids of live requests, and of cancelled ones for a while.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use onus_core::Timestamp;

use super::token::Token;

/// An id under a hash with secret keys. Two ids of one process that share it would only make each
/// other ambiguous, and nobody can look for such a pair.
pub(super) type IdHash = u64;

pub(super) struct IdTable {
    known: HashMap<IdHash, Known, BuildHasherDefault<Hashed>>,
    /// Ids that linger with the time at which to look at them again; each once, the earliest
    /// first but for ids that were cancelled again.
    lingering: VecDeque<(Timestamp, IdHash)>,
    max: usize,
    linger: Duration,
    now: Timestamp,
    /// Live requests with an id that is not in the table: any id may be theirs.
    unlisted: usize,
    /// Until when such an id of a cancelled request lingers.
    unlisted_until: Timestamp,
}

/// What is known of one id.
#[derive(Default)]
struct Known {
    /// Live requests that have it.
    live: u32,
    /// The tokens of them all, by exclusive or: of one alone, its token.
    tokens: u64,
    lingers_until: Timestamp,
    /// Whether it is in the queue of ids that linger.
    queued: bool,
}

pub(super) enum FoundId {
    One(Token),
    Ambiguous,
    Unknown,
}

/// Lingering ids looked at in one go. More than a request can add, so that the queue empties, and
/// few enough for a lock.
const SWEEP: usize = 2 * super::IDS_PER_REQUEST;

impl IdTable {
    pub(super) fn new(max: usize, linger: Duration) -> Self {
        Self {
            known: HashMap::default(),
            lingering: VecDeque::new(),
            max,
            linger,
            now: Timestamp::ZERO,
            unlisted: 0,
            unlisted_until: Timestamp::ZERO,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Moves time on and forgets some of what has lingered long enough. A clock that steps back
    /// is read as standing still.
    #[inline]
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        for _ in 0..SWEEP {
            let Some(&(until, id)) = self.lingering.front() else { return };
            if until > self.now {
                return;
            }
            self.lingering.pop_front();
            let Some(known) = self.known.get_mut(&id) else { continue };
            if known.lingers_until > self.now {
                self.lingering.push_back((known.lingers_until, id));
            } else if known.live == 0 {
                self.known.remove(&id);
            } else {
                known.queued = false;
            }
        }
    }

    /// Moves time on and forgets all that has lingered long enough.
    pub(super) fn forget(&mut self, now: Timestamp) {
        self.advance(now);
        while self.lingering.front().is_some_and(|(until, _)| *until <= self.now) {
            self.advance(now);
        }
    }

    /// Enters an id of a live request; `false` where there is no room.
    #[inline]
    pub(super) fn insert(&mut self, token: Token, id: IdHash) -> bool {
        if self.known.len() >= self.max && !self.known.contains_key(&id) {
            return false;
        }
        let known = self.known.entry(id).or_default();
        known.live += 1;
        known.tokens ^= token.bits();
        true
    }

    /// Takes a request's ids out; after a cancelled one they linger.
    #[inline]
    pub(super) fn remove(&mut self, token: Token, ids: &[IdHash], cancelled: bool) {
        let until = self.now.saturating_add(self.linger);
        for id in ids {
            let Some(known) = self.known.get_mut(id) else { continue };
            known.live -= 1;
            known.tokens ^= token.bits();
            if cancelled {
                known.lingers_until = until;
                if !known.queued {
                    known.queued = true;
                    self.lingering.push_back((until, *id));
                }
            } else if known.live == 0 && !known.queued {
                self.known.remove(id);
            }
        }
    }

    pub(super) fn add_unlisted(&mut self) {
        self.unlisted += 1;
    }

    pub(super) fn remove_unlisted(&mut self, cancelled: bool) {
        self.unlisted -= 1;
        if cancelled {
            self.unlisted_until = self.now.saturating_add(self.linger);
        }
    }

    pub(super) fn find(&self, id: IdHash) -> FoundId {
        if self.unlisted > 0 || self.unlisted_until > self.now {
            return FoundId::Ambiguous;
        }
        let Some(known) = self.known.get(&id) else { return FoundId::Unknown };
        match known.live {
            _ if known.lingers_until > self.now => FoundId::Ambiguous,
            0 => FoundId::Unknown,
            1 => FoundId::One(Token::from_bits(known.tokens)),
            2.. => FoundId::Ambiguous,
        }
    }
}

/// A hasher for keys that are hashes.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not reached: the keys are `u64`.
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
