//! A request as bytes, for hosts whose workers share nothing but bytes.
//!
//! In a Wasm filter of Envoy each worker has a memory, and so an agent, of its own; what they share
//! is a table of bytes. The worker that serves a request puts its record there. A worker that makes
//! a call for it takes the request from the record ([`Agent::inbound_of_record`]), and puts what the
//! call came to into the record, as one of its entries ([`Relay::put`]); the first one takes the
//! entries over before it answers ([`Inbound::adopt`]). An entry has one writer and keeps its place.

use onus_core::{CALL_BYTES, InboundCall, SlotId, Timestamp};

use super::{Arrival, CallIdentity, CallNote, Inbound, NOTES_MAX, Origin, Progress};
use crate::agent::Agent;
use crate::correlator::Token;
use crate::edges::{EdgeKey, lock};
use crate::switch::{mode_from_bits, mode_to_bits};
use crate::symbols::{Procedure, Symbols};

use std::sync::Arc;

/// The most calls of a request that are kept in its record; further ones are context-lost.
const ENTRIES_MAX: usize = 256;

/// As long as most records of requests without calls are.
const RECORD_LEN: usize = 96;

const VERSION: u8 = 2;

/// A call of this worker for a request that another worker serves.
#[derive(Clone)]
pub struct Relay {
    inbound: Inbound,
    slot: SlotId,
    /// The place of its entry, once it has one.
    place: Option<usize>,
}

impl Inbound {
    /// The record of a request that has made no call, under the token of this worker.
    #[must_use]
    pub fn record(&self, token: Token) -> Vec<u8> {
        let served = &*self.0;
        let symbols = served.agent.symbols();
        let mut record = Vec::with_capacity(RECORD_LEN);
        record.push(VERSION);
        record.extend(token.text());
        record.extend(mode_to_bits(served.mode).to_le_bytes());
        record.extend(served.lot.number().to_le_bytes());
        record.push(u8::from(served.marked));
        record.extend(served.attempt.to_le_bytes());
        let deadline = served.deadline.map_or(u64::MAX, Timestamp::as_nanos);
        record.extend(deadline.to_le_bytes());
        write_procedure(&mut record, self.procedure(), symbols);
        record
    }

    /// Takes the calls in the request's record over; whether the record could be read.
    pub fn adopt(&self, record: &[u8]) -> bool {
        let Some((_, entries)) = read_facts(record) else { return false };
        self.step(|progress| progress.adopt(&self.0.agent, self.procedure(), entries)).is_some()
    }

    /// Calls of the service could not be tied to a request, on another worker, while this one was
    /// served.
    pub fn untied_elsewhere(&self) {
        self.0.untied_elsewhere.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// What the record of this request is to know of one of its calls.
    pub(crate) fn relay(&self, slot: SlotId) -> Option<Relay> {
        let adopted = lock(&self.0.progress).adopted.iter().position(|known| *known == slot);
        self.0.relayed.then(|| Relay { inbound: self.clone(), slot, place: adopted })
    }
}

impl Agent {
    /// A request that another worker serves, by its record, if it has this token.
    #[must_use]
    pub fn inbound_of_record(self: &Arc<Self>, record: &[u8], token: Token) -> Option<Inbound> {
        let (facts, entries) = read_facts(record)?;
        if facts.token != token || Entries(entries).count() >= ENTRIES_MAX {
            return None;
        }
        let procedure = facts.procedure(self.symbols());
        let arrival = Arrival {
            procedure: self.procedures().find(procedure),
            mode: mode_from_bits(facts.mode),
            lot: onus_core::Lot::of_random(facts.lot.into()),
            marked: facts.marked,
            attempt: facts.attempt,
            deadline: facts.deadline,
            untied_before: self.untied_calls(),
        };
        let inbound = Inbound::relayed(self.clone(), arrival);
        inbound.step(|progress| progress.adopt(self, procedure, entries))?;
        Some(inbound)
    }
}

impl Relay {
    /// The record with what the call has come to so far, and nothing else changed. `None` where
    /// `latest` is not the request's record any more, or has no room.
    ///
    /// Another worker may have put `latest` there since; if it does so again before the result is
    /// in place, ask again.
    #[must_use]
    pub fn put(&self, latest: &[u8]) -> Option<(Vec<u8>, Placed)> {
        let (_, entries) = read_facts(latest)?;
        let own = self.entry()?;
        let head = latest.len() - entries.len();
        let mut record = latest[..head].to_vec();
        let mut count = 0;
        for entry in Entries(entries) {
            let entry = if self.place == Some(count) { &own } else { entry };
            write_bytes(&mut record, entry);
            count += 1;
        }
        match self.place {
            Some(place) if place < count => Some((record, Placed(place))),
            Some(_) => None,
            None if count >= ENTRIES_MAX => None,
            None => {
                write_bytes(&mut record, &own);
                Some((record, Placed(count)))
            }
        }
    }

    /// The entry is in its place.
    pub fn placed(&mut self, placed: Placed) {
        self.place = Some(placed.0);
    }

    fn entry(&self) -> Option<Vec<u8>> {
        let progress = lock(&self.inbound.0.progress);
        let agent = &self.inbound.0.agent;
        let edge = agent.edge_by_id(progress.call.edge(self.slot)?)?;
        let mut entry = Vec::new();
        entry.extend(progress.call.call_bytes(self.slot)?);
        write_text(&mut entry, agent.symbols().name(edge.key.callee));
        write_procedure(&mut entry, edge.key.procedure, agent.symbols());
        if let Some(note) = progress.notes.iter().rev().find(|note| note.slot == self.slot) {
            entry.extend(note.identity.head.to_le_bytes());
            entry.push(u8::from(note.identity.body.is_some()));
            entry.extend(note.identity.body.unwrap_or(0).to_le_bytes());
            entry.extend(note.identity.previous.to_le_bytes());
            if let Some(origin) = &note.origin {
                write_text(&mut entry, &origin.service);
                entry.push(origin.hops);
            }
        }
        Some(entry)
    }
}

/// The place of an entry in a record.
#[derive(Clone, Copy, Debug)]
pub struct Placed(usize);

impl Progress {
    fn adopt(&mut self, agent: &Agent, caller: Procedure, entries: &[u8]) {
        self.call = InboundCall::new(self.call.arm(), self.call.is_marked());
        self.notes.clear();
        self.adopted.clear();
        for entry in Entries(entries) {
            // Each entry keeps its place: one that cannot be read ends what is known.
            let Some(slot) = self.adopt_entry(agent, caller, entry) else { return };
            self.adopted.push(slot);
        }
    }

    fn adopt_entry(&mut self, agent: &Agent, caller: Procedure, entry: &[u8]) -> Option<SlotId> {
        let mut rest = entry;
        let call: [u8; CALL_BYTES] = take(&mut rest)?;
        let symbols = agent.symbols();
        let callee = symbols.intern(take_text(&mut rest)?);
        let procedure = take_procedure(&mut rest, symbols)?;
        let key = EdgeKey { caller, callee, procedure };
        let edge = agent.edge_table().find(key, symbols, || Timestamp::ZERO);
        let slot = self.call.adopt(edge.id, &call)?;
        if let Some(head) = take(&mut rest).map(u64::from_le_bytes) {
            let [known] = take(&mut rest)?;
            let body = take(&mut rest).map(u64::from_le_bytes)?;
            let previous = take(&mut rest).map(u32::from_le_bytes)?;
            let body = (known == 1).then_some(body);
            let identity = CallIdentity { callee, head, body, previous };
            let origin = take_text(&mut rest).and_then(|service| {
                let [hops] = take(&mut rest)?;
                Some(Origin { service: service.into(), hops })
            });
            if self.notes.len() < NOTES_MAX {
                self.notes.push(CallNote { slot, identity, origin });
            }
        }
        Some(slot)
    }
}

/// What a record says of the request itself.
struct Facts<'a> {
    token: Token,
    mode: u32,
    lot: u16,
    marked: bool,
    attempt: u32,
    deadline: Option<Timestamp>,
    method: &'a str,
    route: &'a str,
}

impl Facts<'_> {
    fn procedure(&self, symbols: &Symbols) -> Procedure {
        Procedure { method: symbols.intern(self.method), route: symbols.intern(self.route) }
    }
}

/// The facts, and the bytes of the entries behind them.
fn read_facts(record: &[u8]) -> Option<(Facts<'_>, &[u8])> {
    let mut rest = record;
    let [version] = take(&mut rest)?;
    if version != VERSION {
        return None;
    }
    let token: [u8; Token::TEXT_LEN] = take(&mut rest)?;
    let facts = Facts {
        token: Token::parse(&token)?,
        mode: u32::from_le_bytes(take(&mut rest)?),
        lot: u16::from_le_bytes(take(&mut rest)?),
        marked: take(&mut rest)? == [1],
        attempt: u32::from_le_bytes(take(&mut rest)?),
        deadline: match u64::from_le_bytes(take(&mut rest)?) {
            u64::MAX => None,
            nanos => Some(Timestamp::from_nanos(nanos)),
        },
        method: take_text(&mut rest)?,
        route: take_text(&mut rest)?,
    };
    Some((facts, rest))
}

/// The entries of a record.
struct Entries<'a>(&'a [u8]);

impl<'a> Iterator for Entries<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        take_bytes(&mut self.0)
    }
}

fn write_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    // Names are shorter, and so is what is made of a few of them.
    let len = u16::try_from(bytes.len()).unwrap_or(0);
    to.extend(len.to_le_bytes());
    to.extend(&bytes[..usize::from(len)]);
}

fn write_text(to: &mut Vec<u8>, text: &str) {
    write_bytes(to, text.as_bytes());
}

fn write_procedure(to: &mut Vec<u8>, procedure: Procedure, symbols: &Symbols) {
    write_text(to, symbols.name(procedure.method));
    write_text(to, symbols.name(procedure.route));
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u16::from_le_bytes(take(rest)?);
    let (taken, behind) = rest.split_at_checked(len.into())?;
    *rest = behind;
    Some(taken)
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_bytes(rest)?).ok()
}

fn take_procedure(rest: &mut &[u8], symbols: &Symbols) -> Option<Procedure> {
    let method = symbols.intern(take_text(rest)?);
    let route = symbols.intern(take_text(rest)?);
    Some(Procedure { method, route })
}
