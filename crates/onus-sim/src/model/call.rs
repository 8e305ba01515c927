//! One node's call of another: the attempts of Onus and of a layer below it.

use onus_core::{
    CallError, CalleeClaim, Claim, Draw, EdgeId, Failure, MethodKind, OutboundCall, Ownership,
    Pushback, SlotId, Stop, Terms, Timestamp, Tries, Verdict,
};

use super::config::{Hindrance, Retries};
use super::held::DEADLINE;
use super::paths::{Beside, Hop, Paths};
use super::run::{Answer, Below, Reply, Request, Runner, Serving};
use super::seen::{Event, Log};

/// How a call ended for the handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Ok,
    Failed(Stop),
    Dropped,
}

/// A call under way.
struct Calling {
    edge: usize,
    slot: Option<SlotId>,
    outbound: OutboundCall,
    place: u64,
    /// The sends of this host and of the layer below it.
    sends: u32,
    /// What the last attempt brought.
    below: Below,
    hindrance: Hindrance,
}

impl<L: Log> Runner<'_, L> {
    /// Makes the call; whether it is answered in the end.
    pub(super) fn call(&mut self, edge: usize, serving: &mut Serving) -> bool {
        let config = self.config;
        let role = config.roles[config.topology.edges()[edge].from];
        let class = self.rules.class(config.edges[edge].held);
        let id = EdgeId(u32::try_from(edge).unwrap_or(u32::MAX));
        let slot = if role.ties() { serving.inbound.on_started(id, class) } else { None };
        let terms = Terms {
            arm: self.rules.arm(role.arm()),
            marked: role.ties() && serving.inbound.is_marked(),
            method: MethodKind::Safe,
            deadline: Some(DEADLINE),
        };
        let mut calling = Calling {
            edge,
            slot,
            outbound: OutboundCall::new(terms),
            // Only small trees are coupled, and only they look at places.
            place: serving.place.wrapping_mul(PLACES).wrapping_add((edge as u64 + 1) * SENDS),
            sends: 0,
            below: Below { used: false, paths: Paths::default() },
            hindrance: Hindrance::None,
        };
        let end = self.attempts(&mut calling, serving);
        self.conclude(&calling, end, serving);
        end == End::Ok
    }

    fn attempts(&mut self, calling: &mut Calling, serving: &mut Serving) -> End {
        let edge = calling.edge;
        let mut used = false;
        loop {
            let marked = calling.outbound.mark() && self.rules.marks();
            calling.outbound.on_sent();
            report(calling, serving);
            let number = calling.outbound.tries().attempts;
            self.tell(Event::Sent { edge, number, marked });
            let attempt = if calling.outbound.terms().arm.is_off() { 1 } else { number };
            let reply = self.through_layer(calling, Request { marked, attempt, place: 0 });
            used |= reply.below.used;
            calling.below = Below { used, ..reply.below };
            if self.is_dropped(edge, false) {
                return End::Dropped;
            }
            let (claim, attempt) = match reply.answer {
                Answer::Ok => {
                    let held = &mut self.held[edge];
                    calling.outbound.on_success(&held.policy, &mut held.state, Timestamp::ZERO);
                    report(calling, serving);
                    return End::Ok;
                }
                Answer::Error { claim, attempt, .. } => (claim, attempt),
                Answer::Silent => (None, None),
            };
            let is_reply = reply.answer != Answer::Silent;
            calling.hindrance = self.hindrance(calling, claim);
            let varies = self.config.faults.hindrances;
            let held = &mut self.held[edge];
            let met = held.meets(calling.hindrance, varies);
            let failure = Failure {
                error: if is_reply { met.error } else { CallError::Timeout },
                claim,
                attempt: attempt.filter(|_| self.rules.counts_layers()),
                pushback: if met.refused { Pushback::Refused } else { Pushback::None },
                replayable: met.replayable,
                body_broke: false,
            };
            let verdict =
                calling.outbound.on_failure(&failure, &held.policy, &mut held.state, met.now, DRAW);
            report(calling, serving);
            let stop = match verdict {
                Verdict::Retry(_) => None,
                Verdict::Stop(stop) => Some(stop),
            };
            let reads = calling.outbound.tries().last.unwrap_or(CalleeClaim::Silent);
            self.tell(Event::Decided { edge, reads, stop });
            match stop {
                Some(stop) => return End::Failed(stop),
                None if self.is_dropped(edge, true) => return End::Dropped,
                None => {}
            }
        }
    }

    /// One attempt as the service sees it: a layer below repeats it with the same headers, and
    /// counts.
    fn through_layer(&mut self, calling: &mut Calling, request: Request) -> Reply {
        let ends = self.config.topology.edges()[calling.edge];
        let layer = self.config.roles[ends.from].layer();
        let most = match (layer, self.config.edges[calling.edge].retries) {
            (Some(_), Retries::Attempts(most)) => most,
            (
                Some(_),
                Retries::NotConfigured
                | Retries::BudgetDenied
                | Retries::Excluded
                | Retries::NotReplayable
                | Retries::NoTime,
            )
            | (None, _) => 1,
        };
        let mut number = 1;
        loop {
            calling.sends += 1;
            let place = calling.place | u64::from(calling.sends.min(SENDS as u32 - 1));
            let attempt = request.attempt.max(number);
            let mut reply = self.ask(ends.to, Request { attempt, place, ..request });
            let obeyed = match reply.answer {
                Answer::Ok => true,
                Answer::Error { vetoes, .. } => vetoes && layer == Some(true),
                Answer::Silent => false,
            };
            if obeyed || number >= most {
                reply.below.used |= number > 1;
                return reply;
            }
            number += 1;
            self.tell(Event::Layer { edge: calling.edge });
        }
    }

    /// Whether the handler gives the call up, in its attempt or before the retry.
    fn is_dropped(&mut self, edge: usize, waits: bool) -> bool {
        let callee = self.config.topology.edges()[edge].to;
        let may = self.config.faults.dropped && self.may_fail(callee);
        let dropped = may && self.tape.choose(2) == 1;
        if dropped {
            self.seen.dropped.add(callee);
            self.seen.failures += 1;
            self.seen.hindered = true;
            self.tell(Event::Dropped { edge, waits });
        }
        dropped
    }

    /// What the failed attempt meets besides its error, where the decision looks at it and the
    /// claim can see it.
    fn hindrance(&mut self, calling: &Calling, claim: Option<Claim>) -> Hindrance {
        let faults = self.config.faults;
        let retries = self.config.edges[calling.edge].retries;
        let suppressed = claim.is_some_and(Claim::is_unclaimed)
            && calling.outbound.terms().arm.ownership() == Ownership::Enforced;
        let first = calling.outbound.tries().sent < 2;
        if !faults.hindrances || !retries.are_made() || suppressed || !first {
            return Hindrance::None;
        }
        let chosen = self.tape.choose(Hindrance::ALL.len() as u8);
        let hindrance = Hindrance::ALL[usize::from(chosen)];
        self.seen.hindered |= hindrance != Hindrance::None;
        hindrance
    }

    /// Tells the request of the call's end, and books what properties ask for.
    fn conclude(&mut self, calling: &Calling, end: End, serving: &mut Serving) {
        let setting = self.config.edges[calling.edge];
        let tries = *calling.outbound.tries();
        let retried = calling.sends > 1;
        let stop = match end {
            End::Ok => None,
            End::Failed(stop) => Some(tries.shadow.unwrap_or(stop)),
            End::Dropped => tries.shadow,
        };
        let refused = stop.is_some_and(is_refusal);
        serving.used |= calling.below.used | retried | refused;
        self.inform(calling, end, tries, serving);
        if end == End::Ok {
            return;
        }
        let capable = end != End::Dropped
            && setting.retries.are_made()
            && calling.hindrance == Hindrance::None;
        let hop = match (retried, capable) {
            (true, _) => Hop::Retried,
            (false, true) => Hop::Capable,
            (false, false) => Hop::Incapable,
        };
        let below = if end == End::Dropped { Paths::CULPRIT } else { calling.below.paths };
        let mut paths = below.through(hop);
        if refused && !retried {
            paths.beside = paths.beside.with(Beside::REFUSAL);
        }
        if setting.open {
            self.seen.settled.add(paths);
            serving.swallowed |= setting.held.is_blamed();
        } else {
            serving.paths = if serving.fatal == 0 { paths } else { serving.paths.and(paths) };
            serving.fatal += 1;
        }
    }

    fn inform(&mut self, calling: &Calling, end: End, tries: Tries, serving: &mut Serving) {
        let Some(slot) = calling.slot else { return };
        let setting = self.config.edges[calling.edge];
        match end {
            End::Ok if tries.attempts >= 2 && self.rules.blames_failed_attempts() => {
                serving.inbound.on_failed(slot, Stop::Exhausted);
            }
            End::Ok => serving.inbound.on_ok(slot),
            End::Failed(stop) => {
                let (tries, stop) = self.rules.told(tries, stop, setting.retries.attempts());
                serving.inbound.on_attempt(slot, &tries);
                serving.inbound.on_failed(slot, stop);
                if self.rules.class(setting.held).is_blamed() {
                    serving.criteria.add(&tries, tries.ending(stop));
                }
            }
            End::Dropped if self.rules.sees_dropped_calls() => serving.inbound.on_abandoned(slot),
            End::Dropped => serving.inbound.on_ok(slot),
        }
    }
}

/// Tells the request how its call stands.
fn report(calling: &Calling, serving: &mut Serving) {
    if let Some(slot) = calling.slot {
        serving.inbound.on_attempt(slot, calling.outbound.tries());
    }
}

/// Whether the stop refuses what a retry further up must not make up for.
const fn is_refusal(stop: Stop) -> bool {
    match stop {
        Stop::Pushback | Stop::Marked | Stop::Gated | Stop::BudgetDenied => true,
        Stop::Suppressed
        | Stop::NotConfigured
        | Stop::NotReplayable
        | Stop::Exhausted
        | Stop::NoTime => false,
    }
}

/// A place is the caller's, the edge's and the send's number, in base [`PLACES`].
const PLACES: u64 = 128;
const SENDS: u64 = 4;

/// A draw that a closed gate stops, and that takes every probe.
const DRAW: Draw = Draw::from_bits(0xffff);
