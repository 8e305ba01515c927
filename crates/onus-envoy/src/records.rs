//! Records of requests in the table that workers share, where they share no memory.
//!
//! A live request has one key, which is used again when it is over: there are as many keys as there
//! were requests at the same time.

use onus_agent::correlator::Token;
use onus_agent::{Agent, Inbound, Relay};

use crate::stream::Shared;

use std::sync::Arc;

/// How often two workers may meet at one key before one gives up; its call is then context-lost.
const MEETINGS_MAX: u32 = 64;

/// The key of the number of calls that could be tied to no request.
const UNTIED: &str = "onus.untied";

/// The record of a request that this worker serves.
pub(crate) struct Record {
    token: Token,
    untied_before: u64,
    adopted: bool,
}

impl Record {
    /// Files the record of a request under this worker's token; the token for its calls.
    pub(crate) fn open(
        shared: &dyn Shared,
        inbound: &Inbound,
        token: Token,
    ) -> Option<(Self, Token)> {
        let token = token.of_worker(shared.worker());
        let record = Self { token, untied_before: untied(shared), adopted: false };
        let filed = shared.set(&key(token), &inbound.record(token), 0);
        filed.then_some((record, token))
    }

    /// Tells the request what other workers know of its calls, once. What was tied to no request
    /// matters only for one that `failed`.
    pub(crate) fn adopt(&mut self, shared: &dyn Shared, inbound: &Inbound, failed: bool) {
        if std::mem::replace(&mut self.adopted, true) {
            return;
        }
        if failed && untied(shared) != self.untied_before {
            inbound.untied_elsewhere();
        }
        if let Some((record, _)) = shared.get(&key(self.token)) {
            inbound.adopt(&record);
        }
    }

    /// The request is over.
    pub(crate) fn close(&self, shared: &dyn Shared) {
        shared.set(&key(self.token), &[], 0);
    }
}

/// The request with this token, which any worker may serve.
pub(crate) fn find(shared: &dyn Shared, agent: &Arc<Agent>, token: Token) -> Option<Inbound> {
    let (record, _) = shared.get(&key(token))?;
    agent.inbound_of_record(&record, token)
}

/// Puts what a call came to into the record of its request; whether it is there.
pub(crate) fn put(shared: &dyn Shared, token: Token, relay: &mut Relay) -> bool {
    for _ in 0..MEETINGS_MAX {
        let Some((latest, version)) = shared.get(&key(token)) else { return false };
        let Some((record, placed)) = relay.put(&latest) else { return false };
        if shared.set(&key(token), &record, version) {
            relay.placed(placed);
            return true;
        }
    }
    false
}

/// A call could be tied to no request, whoever serves it.
pub(crate) fn count_untied(shared: &dyn Shared) {
    for _ in 0..MEETINGS_MAX {
        let (bytes, version) = shared.get(UNTIED).unwrap_or_default();
        let count = number(&bytes).wrapping_add(1);
        if shared.set(UNTIED, &count.to_le_bytes(), version) {
            return;
        }
    }
}

fn untied(shared: &dyn Shared) -> u64 {
    shared.get(UNTIED).map_or(0, |(bytes, _)| number(&bytes))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn key(token: Token) -> String {
    format!("onus.request.{:x}", token.place())
}
