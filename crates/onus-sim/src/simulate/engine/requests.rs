//! A request in a service: arrival, work, calls, answer.

use onus_core::{Arm, CallError, Circumstances, Claim, ClaimReason, ClaimVerdict, InboundCall};

use super::World;
use super::events::Event;
use super::reply::{ErrorReply, ORDINARY, Reply};
use super::slab::Ref;
use super::state::{Origin, Phase, Request};
use crate::simulate::plan::{ServicePlan, What};
use crate::simulate::policy::{Claims, EXCLUDED};
use crate::simulate::scenario::Balancing;

impl World<'_> {
    /// A request comes to a service; not to the instance `avoided`, if there is another.
    pub(super) fn arrive(
        &mut self,
        service: u32,
        origin: Origin,
        deadline: Option<u64>,
        avoided: Option<u32>,
    ) -> Ref {
        let plan = &self.plan.services[service as usize];
        let instance = self.balance(service, avoided);
        let number = self.tally.handled(service, &origin, self.now);
        let marked = origin.marked && !plan.arm.is_off();
        let request = self.requests.insert(Request {
            service,
            instance,
            origin,
            number,
            phase: Phase::Queued,
            inbound: InboundCall::new(plan.arm, marked),
            untied_calls: false,
            deadline,
            step: 0,
            more: 0,
            open_calls: 0,
            last_call: None,
            failed: false,
        });
        let own = plan.timeout.map(|timeout| self.now + timeout);
        if let Some(end) = own.into_iter().chain(deadline).min() {
            self.events.at(end, Event::OutOfTime(request));
        }
        let place = &mut self.instances[instance as usize];
        if place.has_free_worker() {
            self.work(request);
        } else if place.waiting < plan.queue {
            place.wait(request);
        } else {
            // It waits for nobody, and no place is to be freed.
            if let Some(request) = self.requests.get_mut(request) {
                request.phase = Phase::Calling;
            }
            self.answer_error(request, ORDINARY, plan.sheds_with_pushback);
        }
        request
    }

    fn balance(&mut self, service: u32, avoided: Option<u32>) -> u32 {
        let plan = &self.plan.services[service as usize];
        let (first, count) = (plan.first_instance, plan.instances);
        if count == 1 {
            return first;
        }
        match self.plan.balancing {
            Balancing::Random => match avoided {
                // One of the others: the places behind the avoided one move up.
                Some(avoided) => {
                    let drawn = first + self.luck.below(count - 1);
                    if drawn >= avoided { drawn + 1 } else { drawn }
                }
                None => first + self.luck.below(count),
            },
            Balancing::RoundRobin => {
                let turn = &mut self.turns[service as usize];
                *turn = (*turn + 1) % count;
                if Some(first + *turn) == avoided {
                    *turn = (*turn + 1) % count;
                }
                first + *turn
            }
            Balancing::LeastBusy => {
                let others = (first..first + count).filter(|instance| Some(*instance) != avoided);
                let busy = |instance: &u32| {
                    let instance = &self.instances[*instance as usize];
                    instance.busy + instance.waiting
                };
                others.min_by_key(busy).unwrap_or(first)
            }
        }
    }

    /// A request gets a worker.
    fn work(&mut self, at: Ref) {
        let Some(request) = self.requests.get_mut(at) else { return };
        request.phase = Phase::Working;
        let (service, instance) = (request.service, request.instance);
        let (number, bad_key) = (request.number, request.origin.bad_key);
        self.instances[instance as usize].busy += 1;
        if self.goes_wrong(What::Hangs, service, instance, number, bad_key) {
            return;
        }
        match self.plan.services[service as usize].work.draw(&mut self.luck) {
            0 => self.events.at_once(Event::Worked(at)),
            time => self.events.at(self.now + time, Event::Worked(at)),
        }
    }

    /// Gives free workers of an instance to those that wait.
    pub(super) fn serve_waiting(&mut self, instance: u32) {
        loop {
            let place = &mut self.instances[instance as usize];
            if !place.has_free_worker() {
                return;
            }
            let Some(next) = place.next() else { return };
            if self.requests.get(next).is_some() {
                self.instances[instance as usize].waiting -= 1;
                self.work(next);
            }
        }
    }

    /// Frees the place of a request that ends or starts to make its calls.
    fn leave(&mut self, instance: u32, phase: Phase) {
        match phase {
            Phase::Queued => {
                let place = &mut self.instances[instance as usize];
                place.waiting -= 1;
            }
            Phase::Working => {
                self.instances[instance as usize].busy -= 1;
                self.serve_waiting(instance);
            }
            Phase::Calling => {}
        }
    }

    pub(super) fn worked(&mut self, at: Ref) {
        let Some(request) = self.requests.get_mut(at) else { return };
        request.phase = Phase::Calling;
        let (service, instance) = (request.service, request.instance);
        let (number, bad_key) = (request.number, request.origin.bad_key);
        self.leave(instance, Phase::Working);
        if self.goes_wrong(What::FailsAtOnce, service, instance, number, bad_key) {
            self.answer(at, true);
        } else {
            self.advance(at);
        }
    }

    /// Makes the next calls of a request, or its answer.
    pub(super) fn advance(&mut self, at: Ref) {
        loop {
            let Some(request) = self.requests.get_mut(at) else { return };
            if request.open_calls > 0 {
                return;
            }
            let plan = &self.plan.services[request.service as usize];
            let is_leaf = request.origin.depth >= self.plan.depth_max;
            if request.failed || is_leaf {
                break;
            }
            if request.more > 0 {
                request.more -= 1;
                let edge = plan.steps[request.step as usize - 1].start;
                self.start_call(at, edge);
                return;
            }
            let Some(step) = plan.steps.get(request.step as usize) else { break };
            request.step += 1;
            self.start_step(at, step.start, step.end);
        }
        self.answer(at, false);
    }

    /// Makes the calls of a step: one edge is called again and again, several are called at once.
    fn start_step(&mut self, at: Ref, first: u32, end: u32) {
        // Holds the request back from its next step while the calls of this one are made.
        self.hold(at, true);
        for edge in first..end {
            let calls = self.plan.edges[edge as usize].calls;
            let times = calls.trunc() as u32 + u32::from(self.luck.happens(calls.fract()));
            if first + 1 == end {
                if let Some(request) = self.requests.get_mut(at) {
                    request.more = times;
                }
            } else {
                for _ in 0..times {
                    self.start_call(at, edge);
                }
            }
        }
        self.hold(at, false);
    }

    fn hold(&mut self, at: Ref, held: bool) {
        if let Some(request) = self.requests.get_mut(at) {
            request.open_calls = if held { request.open_calls + 1 } else { request.open_calls - 1 };
        }
    }

    /// The handler answers; `failed_at_once` before it called anybody.
    fn answer(&mut self, at: Ref, failed_at_once: bool) {
        let Some(request) = self.requests.get(at) else { return };
        let (service, instance, number) = (request.service, request.instance, request.number);
        let bad_key = request.origin.bad_key;
        let is_error = failed_at_once
            || request.failed
            || self.goes_wrong(What::Fails, service, instance, number, bad_key);
        let excluded =
            is_error && self.goes_wrong(What::Excluded, service, instance, number, bad_key);
        if self.goes_wrong(What::LosesAnswer, service, instance, number, bad_key) {
            self.end(at, Reply::Silent(CallError::Reset));
        } else if is_error {
            self.answer_error(at, if excluded { EXCLUDED } else { ORDINARY }, false);
        } else {
            self.end(at, Reply::Ok);
        }
    }

    /// Answers with an error and what the service claims of it.
    pub(super) fn answer_error(&mut self, at: Ref, error: CallError, pushback: bool) {
        let Some(request) = self.requests.get(at) else { return };
        let plan = &self.plan.services[request.service as usize];
        let verdict = request.inbound.claim(Circumstances {
            shield: plan.shield,
            silent_claims: plan.silent_claims,
            untied_calls: request.untied_calls,
        });
        let verdict = verdict.filter(|_| plan.onus).and_then(|verdict| self.as_claimed(verdict));
        let claim = verdict.map(|verdict| verdict.claim);
        let own = !request.failed && request.open_calls == 0;
        self.tally.error(request.service, own, claim.is_some_and(Claim::is_unclaimed));
        let reply = Reply::Error(ErrorReply {
            error,
            claim,
            attempt: says_attempt(plan).then_some(request.origin.attempt),
            veto: verdict.is_some_and(|verdict| verdict.vetoes),
            pushback,
        });
        self.end(at, reply);
    }

    /// The claim as the policy has it.
    fn as_claimed(&self, verdict: ClaimVerdict) -> Option<ClaimVerdict> {
        let shipped = self.plan.shipped()?;
        match shipped.claims {
            Claims::Shipped => Some(verdict),
            Claims::None => None,
            Claims::PlainMatrix => Some(match verdict.reason {
                ClaimReason::Own | ClaimReason::ContextLost | ClaimReason::Operator => verdict,
                ClaimReason::Handoff
                | ClaimReason::Silent
                | ClaimReason::Stopped(_)
                | ClaimReason::InFlight => ClaimVerdict { claim: Claim::Unclaimed, ..verdict },
            }),
        }
    }

    /// The request ends: its place is free, its open calls are given up, its caller is told.
    fn end(&mut self, at: Ref, reply: Reply) {
        let Some(request) = self.requests.remove(at) else { return };
        self.give_up_calls(request.last_call);
        self.leave(request.instance, request.phase);
        match request.origin.caller {
            Some((call, attempt)) => {
                self.events.at_once(Event::Ended { call, attempt, reply });
            }
            None => self.tally.answer(&request.origin, reply.read()),
        }
        self.tally.ended();
    }

    /// The caller has given the request up: it ends without an answer.
    pub(super) fn cancel(&mut self, at: Ref) {
        let Some(request) = self.requests.remove(at) else { return };
        self.give_up_calls(request.last_call);
        self.leave(request.instance, request.phase);
        self.tally.ended();
    }

    pub(super) fn out_of_time(&mut self, at: Ref) {
        self.answer_error(at, CallError::Http(504), false);
    }
}

/// Whether an error says which attempt the callee saw.
fn says_attempt(plan: &ServicePlan) -> bool {
    plan.onus && plan.arm != Arm::Off
}
