//! Records of requests in the table that workers share, where they share no memory.
//!
//! A live request has one key, which is used again when it is over: there are as many keys as there
//! were requests at the same time.

use onus_agent::correlator::Token;
use onus_agent::{Agent, Inbound, Relay, Timestamp};

use crate::stream::Shared;

use std::sync::Arc;

/// How often two workers may meet at one key before one gives up; its call is then context-lost.
const MEETINGS_MAX: u32 = 64;

/// The key of the time of the latest call that could be tied to no request.
const UNTIED: &str = "onus.untied";

/// The record of a request that this worker serves.
pub(crate) struct Record {
    key: String,
    opened: Timestamp,
    len: usize,
    /// Whether the calls in it have been taken over.
    adopted: bool,
    /// Whether calls were put into it.
    grown: bool,
}

impl Record {
    /// Files the record of a request under a token with this number; the token for its calls.
    pub(crate) fn open(
        shared: &dyn Shared,
        inbound: &Inbound,
        token: Token,
        number: u16,
        now: Timestamp,
    ) -> Option<(Self, Token)> {
        let token = token.of_worker(number);
        let (key, bytes) = (key(token), inbound.record(token));
        shared.set(&key, &bytes, 0).then(|| {
            let (len, adopted, grown) = (bytes.len(), false, false);
            (Self { key, opened: now, len, adopted, grown }, token)
        })
    }

    /// Tells the request what other workers know of its calls, once. What was tied to no request
    /// matters only for one that `failed`.
    pub(crate) fn adopt(&mut self, shared: &dyn Shared, inbound: &Inbound, failed: bool) {
        if std::mem::replace(&mut self.adopted, true) {
            return;
        }
        if failed && untied(shared).is_some_and(|latest| latest >= self.opened) {
            inbound.untied_elsewhere();
        }
        if let Some((record, _)) = shared.get(&self.key) {
            self.grown = record.len() > self.len;
            inbound.adopt(&record);
        }
    }

    /// The request is over. A record without calls stays until another request has its key: it is
    /// small, and a call that comes late belongs to this request all the same.
    pub(crate) fn close(&self, shared: &dyn Shared) {
        if self.grown {
            shared.set(&self.key, &[], 0);
        }
    }
}

/// A record as it was read, and the number of its version.
pub(crate) type Read = (Vec<u8>, u32);

/// The request with this token, which any worker may serve.
pub(crate) fn find(
    shared: &dyn Shared,
    agent: &Arc<Agent>,
    token: Token,
) -> Option<(Inbound, Read)> {
    let read = shared.get(&key(token))?;
    Some((agent.inbound_of_record(&read.0, token)?, read))
}

/// Puts what a call came to into the record of its request; whether it is there. Who has `read` the
/// record just now need not do so again.
pub(crate) fn put(
    shared: &dyn Shared,
    token: Token,
    relay: &mut Relay,
    mut read: Option<Read>,
) -> bool {
    let key = key(token);
    for _ in 0..MEETINGS_MAX {
        let Some((latest, version)) = read.take().or_else(|| shared.get(&key)) else {
            return false;
        };
        let Some((record, placed)) = relay.put(&latest) else { return false };
        if shared.set(&key, &record, version) {
            relay.placed(placed);
            return true;
        }
    }
    false
}

/// A call could be tied to no request, whoever serves it. Workers share the clock, so whoever is last
/// is right but for the time that a call of Envoy takes.
pub(crate) fn note_untied(shared: &dyn Shared, now: Timestamp) {
    shared.set(UNTIED, &now.as_nanos().to_le_bytes(), 0);
}

fn untied(shared: &dyn Shared) -> Option<Timestamp> {
    let (bytes, _) = shared.get(UNTIED)?;
    Some(Timestamp::from_nanos(u64::from_le_bytes(bytes.try_into().ok()?)))
}

fn key(token: Token) -> String {
    format!("onus.request.{:x}", token.place())
}
