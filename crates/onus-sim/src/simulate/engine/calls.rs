//! A request's calls: attempts, the decision after each, and their end.

use std::time::Duration;

use onus_core::{
    Backoff, CallError, Draw, EdgeId, Failure, InboundCall, MethodKind, OutboundCall, Pushback,
    Stop, Terms, Timestamp, Verdict,
};

use super::World;
use super::events::Event;
use super::reply::Reply;
use super::slab::Ref;
use super::state::{Call, Origin};
use crate::simulate::plan::What;
use crate::simulate::policy::Kind;
use crate::simulate::rivals::FailedAttempt;
use crate::simulate::scenario::RetriesBy;

impl World<'_> {
    /// A request makes a call.
    pub(super) fn start_call(&mut self, at: Ref, edge: u32) {
        let now = self.timestamp();
        let Some(request) = self.requests.get_mut(at) else { return };
        let service = &self.plan.services[request.service as usize];
        let plan = &self.plan.edges[edge as usize];
        let memory = plan.first_memory + request.instance - service.first_instance;
        let tied = service.onus && !service.context_lost;
        let held = self.held[edge as usize];
        let slot = if tied { request.inbound.on_started(EdgeId(edge), held) } else { None };
        request.untied_calls |= slot.is_none();
        let terms = Terms {
            arm: service.arm,
            marked: tied && request.inbound.is_marked(),
            method: MethodKind::Safe,
            deadline: request.deadline.map(Timestamp::from_nanos),
        };
        let call = self.calls.insert(Call {
            request: at,
            edge,
            memory,
            slot,
            outbound: OutboundCall::new(terms),
            attempt: 0,
            layer_attempt: 1,
            round: 1,
            callee: None,
            last_instance: None,
            before: request.last_call,
        });
        request.last_call = Some(call);
        request.open_calls += 1;
        self.memories[memory as usize].call_started(now);
        self.send(call);
    }

    /// Sends an attempt.
    fn send(&mut self, at: Ref) {
        let now = self.timestamp();
        let Some(call) = self.calls.get_mut(at) else { return };
        if let Err(stop) = call.outbound.may_send(|| now) {
            // The time is over; the request ends at this very moment as well.
            return self.fail(at, stop);
        }
        let first = call.attempt == 0;
        let marks = call.outbound.mark();
        call.outbound.on_sent();
        call.attempt += 1;
        let tries = *call.outbound.tries();
        let (slot, request) = (call.slot, call.request);
        self.tell(request, slot, |inbound, slot| inbound.on_attempt(slot, &tries));
        self.transmit(at, marks, first);
    }

    /// The attempt leaves the caller, or a layer below sends it once more.
    fn transmit(&mut self, at: Ref, marks: bool, first: bool) {
        let Some(call) = self.calls.get(at) else { return };
        let Some(request) = self.requests.get(call.request) else { return };
        let plan = &self.plan.edges[call.edge as usize];
        let service = &self.plan.services[request.service as usize];
        let attempt = if service.arm.is_off() { 1 } else { call.outbound.tries().attempts };
        let first = first && call.layer_attempt == 1;
        let (sent, avoided, origin) = (call.attempt, call.last_instance, request.origin);
        let (from, instance, number) = (request.service, request.instance, request.number);
        let marked = match self.plan.shipped() {
            Some(shipped) => shipped.mark && marks,
            None => self.flags(origin.marked, first),
        };
        let origin = Origin {
            caller: Some((at, sent)),
            original: origin.original && first,
            marked,
            attempt: attempt.max(call.layer_attempt),
            depth: origin.depth + 1,
            ..origin
        };
        let now = self.timestamp();
        let per_try = plan.timeout.map(Duration::from_nanos);
        let time = call.outbound.time_for_attempt(per_try, now);
        let deadline = time.filter(|_| self.plan.deadlines).map(|time| now.saturating_add(time));
        let left = call.outbound.terms().deadline.map(|end| end.saturating_since(now));
        self.tally.attempt(first);
        if self.goes_wrong(What::CannotCall, from, instance, number, origin.bad_key) {
            let reply = Reply::Silent(CallError::Connect);
            return self.events.at_once(Event::Ended { call: at, attempt: sent, reply });
        }
        if let Some(timeout) = per_try.into_iter().chain(left).min() {
            let end = now.saturating_add(timeout).as_nanos();
            self.events.at(end, Event::Timeout { call: at, attempt: sent });
        }
        let to = plan.to;
        let callee = self.arrive(to, origin, deadline.map(Timestamp::as_nanos), avoided);
        let instance = self.requests.get(callee).map(|request| request.instance);
        if let Some(call) = self.calls.get_mut(at) {
            call.callee = Some(callee);
            call.last_instance = instance.or(call.last_instance);
        }
    }

    /// Whether an attempt of somebody else's algorithm says that it descends from a retry.
    fn flags(&self, inherited: bool, first: bool) -> bool {
        match self.plan.policy.kind {
            Kind::Rival(rival) => rival.flags_retries() && (inherited || !first),
            Kind::Shipped(_) => false,
        }
    }

    pub(super) fn resend(&mut self, at: Ref, attempt: u32) {
        if self.calls.get(at).is_some_and(|call| call.attempt == attempt) {
            self.send(at);
        }
    }

    pub(super) fn attempt_timed_out(&mut self, at: Ref, attempt: u32) {
        let Some(call) = self.calls.get_mut(at) else { return };
        if call.attempt != attempt {
            return;
        }
        let Some(callee) = call.callee.take() else { return };
        if self.plan.cancellation {
            self.cancel(callee);
        }
        self.attempt_ended(at, attempt, Reply::Silent(CallError::Timeout));
    }

    pub(super) fn attempt_ended(&mut self, at: Ref, attempt: u32, reply: Reply) {
        let Some(call) = self.calls.get_mut(at) else { return };
        if call.attempt != attempt {
            return;
        }
        call.callee = None;
        let edge = &self.plan.edges[call.edge as usize];
        let Some(failure) = reply.failure(edge.replayable) else { return self.succeed(at) };
        let Some(request) = self.requests.get(call.request) else { return };
        let service = &self.plan.services[request.service as usize];
        let repeats = match service.retries {
            RetriesBy::Policy => false,
            RetriesBy::BlindLayer => true,
            RetriesBy::ObedientLayer => !reply.vetoes(),
        };
        if repeats && call.layer_attempt < edge.layer_attempts {
            call.layer_attempt += 1;
            // The same headers, under a number of its own.
            call.attempt += 1;
            let marks = call.outbound.mark();
            return self.transmit(at, marks, false);
        }
        call.layer_attempt = 1;
        // What belongs to this attempt and comes later, comes too late.
        call.attempt += 1;
        if service.drops && reply.is_silent() {
            return self.drop_call(at);
        }
        match self.verdict(at, &failure) {
            Verdict::Retry(retry) if retry.after.is_zero() => self.send(at),
            Verdict::Retry(retry) => {
                let Some(call) = self.calls.get(at) else { return };
                let time = self.now + retry.after.as_nanos() as u64;
                self.events.at(time, Event::Resend { call: at, attempt: call.attempt });
            }
            Verdict::Stop(stop) => self.fail(at, stop),
        }
    }

    /// The decision after a failed attempt: the shipped one, or somebody else's.
    fn verdict(&mut self, at: Ref, failure: &Failure) -> Verdict {
        let now = self.timestamp();
        let bits = self.luck.next();
        let Some(call) = self.calls.get_mut(at) else { return Verdict::Stop(Stop::Exhausted) };
        let edge = &self.plan.edges[call.edge as usize];
        let memory = &mut self.memories[call.memory as usize];
        // Claims are nothing to somebody else's algorithm, but its attempts are counted as well.
        let mut verdict = call.outbound.on_failure(
            failure,
            &edge.policy,
            &mut memory.state,
            now,
            Draw::from_bits(bits),
        );
        let (request, slot, tries) = (call.request, call.slot, *call.outbound.tries());
        if let Some(rival) = &mut memory.rival {
            let marked = self.requests.get(request).is_some_and(|request| request.origin.marked);
            let failed = FailedAttempt {
                made: tries.attempts,
                error: failure.error,
                serves_retry: marked,
                pushback: failure.pushback == Pushback::Refused,
            };
            if rival.may_retry(&failed, now) {
                let backoff = if self.plan.waits { Backoff::default() } else { Backoff::NONE };
                let after = backoff.delay(tries.attempts, bits as u32);
                verdict = Verdict::Retry(onus_core::Retry {
                    after,
                    cause: onus_core::RetryCause::Claim(onus_core::CalleeClaim::Missing),
                    shadow: None,
                });
            }
        }
        self.tell(request, slot, |inbound, slot| inbound.on_attempt(slot, &tries));
        self.tally.verdict(&verdict);
        verdict
    }

    fn succeed(&mut self, at: Ref) {
        let now = self.timestamp();
        let Some(call) = self.calls.get_mut(at) else { return };
        let edge = &self.plan.edges[call.edge as usize];
        let memory = &mut self.memories[call.memory as usize];
        call.outbound.on_success(&edge.policy, &mut memory.state, now);
        memory.call_succeeded(now);
        let (request, slot, tries) = (call.request, call.slot, *call.outbound.tries());
        self.tell(request, slot, |inbound, slot| {
            inbound.on_attempt(slot, &tries);
            inbound.on_ok(slot);
            inbound.on_closed(slot);
        });
        self.close(at, true);
    }

    /// The call has failed for good, unless the handler makes it again.
    fn fail(&mut self, at: Ref, stop: Stop) {
        let Some(call) = self.calls.get(at) else { return };
        let (request, slot) = (call.request, call.slot);
        self.tell(request, slot, |inbound, slot| inbound.on_failed(slot, stop));
        self.next_round(at);
    }

    /// The handler gives the call up, unless it makes it again.
    fn drop_call(&mut self, at: Ref) {
        let Some(call) = self.calls.get(at) else { return };
        let (request, slot) = (call.request, call.slot);
        self.tell(request, slot, InboundCall::on_abandoned);
        self.next_round(at);
    }

    fn next_round(&mut self, at: Ref) {
        let Some(call) = self.calls.get_mut(at) else { return };
        let Some(request) = self.requests.get_mut(call.request) else { return };
        let tries = self.plan.services[request.service as usize].tries;
        if call.round >= tries {
            return self.close(at, false);
        }
        call.round += 1;
        let terms = *call.outbound.terms();
        call.outbound = match call.slot {
            Some(slot) => OutboundCall::repeated(terms, request.inbound.on_repeated(slot)),
            None => OutboundCall::new(terms),
        };
        self.send(at);
    }

    /// The call has its outcome; the request goes on.
    fn close(&mut self, at: Ref, ok: bool) {
        let Some(call) = self.calls.remove(at) else { return };
        let survives = ok || self.fail_open[call.edge as usize];
        self.unlink(at, &call);
        let Some(request) = self.requests.get_mut(call.request) else { return };
        request.open_calls -= 1;
        request.failed |= !survives;
        self.advance(call.request);
    }

    /// Takes a call out of the list of its request's open calls.
    fn unlink(&mut self, at: Ref, call: &Call) {
        let Some(request) = self.requests.get_mut(call.request) else { return };
        if request.last_call == Some(at) {
            request.last_call = call.before;
            return;
        }
        let mut next = request.last_call;
        while let Some(later) = next.and_then(|later| self.calls.get_mut(later)) {
            if later.before == Some(at) {
                later.before = call.before;
                return;
            }
            next = later.before;
        }
    }

    /// The request ends with these calls without an outcome: nobody waits for them.
    pub(super) fn give_up_calls(&mut self, last: Option<Ref>) {
        let mut next = last;
        while let Some(call) = next.and_then(|call| self.calls.remove(call)) {
            next = call.before;
            if let (Some(callee), true) = (call.callee, self.plan.cancellation) {
                self.cancel(callee);
            }
        }
    }

    fn tell(
        &mut self,
        request: Ref,
        slot: Option<onus_core::SlotId>,
        tell: impl FnOnce(&mut InboundCall, onus_core::SlotId),
    ) {
        if let (Some(request), Some(slot)) = (self.requests.get_mut(request), slot) {
            tell(&mut request.inbound, slot);
        }
    }
}
