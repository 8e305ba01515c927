//! Records of requests in the table that workers share, where they share no memory.
//!
//! A live request has a place, which is used again when it is over: there are as many as there were
//! requests at the same time. What its worker knows of it, the facts, stands under one key of the
//! place, and the calls that are made for it under another, behind the request's token: most requests
//! make none, and Envoy enters a plugin for each value that is not empty, to make room for it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use onus_agent::correlator::Token;
use onus_agent::{Agent, Inbound, Relay};

use crate::stream::Shared;

/// How often two workers may meet at one key before one gives up; its call is then context-lost.
const MEETINGS_MAX: u32 = 64;

/// What the key of a request's facts begins with, and that of its calls.
const FACTS: &str = "onus.facts.";
const CALLS: &str = "onus.calls.";

/// The places of a worker in the table.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The number under which this worker files requests, which nobody else has.
    number: OnceLock<u16>,
    /// How many of them are ready for calls.
    ready: AtomicU32,
}

impl Places {
    /// The token as that of this worker, whose place is ready for calls.
    fn take(&self, shared: &dyn Shared, token: Token) -> Token {
        let index = token.place();
        let token = token.of_worker(*self.number.get_or_init(|| shared.next_number()));
        let first = token.place() - index;
        // Two calls that come at the same time know of each other by the version of what stands
        // there, so something must. It is put there once: a worker takes its places in order.
        for index in self.ready.load(Ordering::Relaxed)..=index {
            shared.set(&key(CALLS, first + index), &[], 0);
            self.ready.store(index + 1, Ordering::Relaxed);
        }
        token
    }
}

/// A request in the table.
pub(crate) struct Filed {
    token: Token,
    facts: Vec<u8>,
}

impl Filed {
    /// The request's record with these calls; `None` where they are another request's.
    fn record(&self, calls: &[u8]) -> Option<Vec<u8>> {
        let entries = match calls {
            [] => calls,
            _ => calls.strip_prefix(self.token.to_string().as_bytes())?,
        };
        Some([&self.facts, entries].concat())
    }

    /// The calls of the request's record.
    fn calls(&self, record: &[u8]) -> Vec<u8> {
        [self.token.to_string().as_bytes(), &record[self.facts.len()..]].concat()
    }

    fn calls_key(&self) -> String {
        key(CALLS, self.token.place())
    }
}

/// The record of a request that this worker serves.
pub(crate) struct Record {
    filed: Filed,
    /// Calls of all workers that could be tied to no request before this one came.
    untied_before: u64,
    /// Whether the calls in it have been taken over.
    adopted: bool,
    /// Whether calls were put into it.
    grown: bool,
}

impl Record {
    /// Files the record of a request under its token at one of `places`; the token for its calls.
    pub(crate) fn open(
        shared: &dyn Shared,
        inbound: &Inbound,
        token: Token,
        places: &Places,
    ) -> Option<(Self, Token)> {
        let token = places.take(shared, token);
        let filed = Filed { token, facts: inbound.record(token) };
        shared.set(&key(FACTS, token.place()), &filed.facts, 0).then(|| {
            let untied_before = shared.untied();
            (Self { filed, untied_before, adopted: false, grown: false }, token)
        })
    }

    /// Tells the request what other workers know of its calls, once. What was tied to no request
    /// matters only for one that `failed`.
    pub(crate) fn adopt(&mut self, shared: &dyn Shared, inbound: &Inbound, failed: bool) {
        if std::mem::replace(&mut self.adopted, true) {
            return;
        }
        if failed && shared.untied() != self.untied_before {
            inbound.untied_elsewhere();
        }
        let mut record = None;
        shared.show(&self.filed.calls_key(), &mut |calls, _| {
            self.grown = !calls.is_empty();
            record = self.filed.record(calls).filter(|_| self.grown);
        });
        if let Some(record) = record {
            inbound.adopt(&record);
        }
    }

    /// The request is over: its calls go, as their place will be another request's.
    pub(crate) fn close(&self, shared: &dyn Shared) {
        if self.grown {
            shared.set(&self.filed.calls_key(), &[], 0);
        }
    }
}

/// A record as it was read, and the number of its calls' version.
pub(crate) type Read = (Vec<u8>, u32);

/// A request that was found in the table.
pub(crate) type Found = (Filed, Read);

/// The request with this token, which any worker may serve.
pub(crate) fn find(
    shared: &dyn Shared,
    agent: &Arc<Agent>,
    token: Token,
) -> Option<(Inbound, Found)> {
    // In this order: calls of another request are of an earlier one, as long as these facts stand.
    let (calls, version) = shared.get(&key(CALLS, token.place()))?;
    let (facts, _) = shared.get(&key(FACTS, token.place()))?;
    let filed = Filed { token, facts };
    let record = filed.record(&calls).unwrap_or_else(|| filed.facts.clone());
    Some((agent.inbound_of_record(&record, token)?, (filed, (record, version))))
}

/// Puts what a call came to into the record of its request; whether it is there. Who has `read` the
/// record just now need not do so again.
pub(crate) fn put(
    shared: &dyn Shared,
    filed: &Filed,
    relay: &mut Relay,
    mut read: Option<Read>,
) -> bool {
    let key = filed.calls_key();
    let again = || {
        let (calls, version) = shared.get(&key)?;
        Some((filed.record(&calls)?, version))
    };
    for _ in 0..MEETINGS_MAX {
        let Some((latest, version)) = read.take().or_else(again) else { return false };
        let Some((record, placed)) = relay.put(&latest) else { return false };
        if shared.set(&key, &filed.calls(&record), version) {
            relay.placed(placed);
            return true;
        }
    }
    false
}

/// Each request has some, so they are not left to the formatter.
fn key(begins: &str, place: u32) -> String {
    const DIGITS: u32 = u32::BITS / 4;
    let mut key = String::with_capacity(begins.len() + DIGITS as usize);
    key.push_str(begins);
    let digits = (0..DIGITS).rev().map(|at| place >> (4 * at) & 0xf);
    key.extend(digits.filter_map(|digit| char::from_digit(digit, 16)));
    key
}
