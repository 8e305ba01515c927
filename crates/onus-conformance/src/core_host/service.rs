//! One service: the moments of a step vector handed to the core.

use std::collections::BTreeMap;

use onus_core::{
    Arm, Circumstances, EdgeId, EdgePolicy, EdgeState, InboundCall, Lot, Mode, OutboundCall,
    SHIELD_DEFAULT, Shield, SlotId, Stop, Terms, Timestamp, Verdict, criteria_met,
};

use super::load;
use crate::host::{Fact, Observation, Unsupported};
use crate::step::{
    Answer, Arrive, Because, BrakeSeen, Call, Edge, Failed, Handler, NotSent, Repeat, Sent, Step,
    StepVector, Then,
};

/// The service of a vector, between two of its moments.
pub(super) struct Service {
    now: Timestamp,
    mode: Mode,
    shield: Option<Shield>,
    silent_claims: bool,
    edges: BTreeMap<String, HeldEdge>,
    request: Request,
    calls: BTreeMap<String, Made>,
    /// The call that steps without a name mean.
    latest: String,
}

/// An edge as the service holds it.
pub(super) struct HeldEdge {
    pub(super) id: EdgeId,
    setup: Edge,
    pub(super) policy: EdgePolicy,
    pub(super) state: EdgeState,
}

/// The request being served.
struct Request {
    inbound: InboundCall,
    lot: Lot,
    deadline: Option<Timestamp>,
    untied_calls: bool,
}

/// A logical call of the request being served.
struct Made {
    edge: String,
    /// Where the request knows the call; `None` if it cannot be tied.
    slot: Option<SlotId>,
    outbound: OutboundCall,
}

impl Service {
    pub(super) fn new(vector: &StepVector) -> Self {
        let edges = (0..).map(EdgeId).zip(&vector.edges).map(|(id, (name, setup))| {
            let policy = setup.policy();
            let state = EdgeState::new(&policy);
            (name.clone(), HeldEdge { id, setup: setup.clone(), policy, state })
        });
        let mode = vector.service.mode();
        Self {
            now: Timestamp::ZERO,
            mode,
            shield: None,
            silent_claims: vector.service.silent_claims,
            edges: edges.collect(),
            request: Request::new(mode, &Arrive::default(), Timestamp::ZERO),
            calls: BTreeMap::new(),
            latest: String::new(),
        }
    }

    pub(super) fn take(&mut self, step: &Step) -> Result<Observation, Unsupported> {
        let now = self.now;
        match step {
            Step::At(time) => {
                self.now = Timestamp::ZERO.saturating_add(time.0);
                Ok(Observation::nothing())
            }
            Step::Arrive(step) => {
                self.calls.clear();
                self.request = Request::new(self.mode, step, now);
                Ok([Fact::Arm(self.request.inbound.arm())].into())
            }
            Step::Call(step) => self.call(step),
            Step::Sent(step) => self.sent(step),
            Step::NotSent(step) => self.not_sent(step),
            Step::Failed(step) => self.failed(step),
            Step::Ok(step) => self.ok(step.call.as_ref()),
            Step::Abandoned(step) => {
                let (_, made) = self.made(step.call.as_ref())?;
                let slot = made.slot;
                self.request.tell(slot, |inbound, slot| inbound.on_abandoned(slot));
                Ok(Observation::nothing())
            }
            Step::Repeat(step) => self.repeat(step),
            Step::Answer(step) => Ok(self.answer(step)),
            Step::Shield(step) => {
                let lasts = step.lasts.map_or(SHIELD_DEFAULT, |span| span.0);
                self.shield = Some(Shield::until(now.saturating_add(lasts)));
                Ok(Observation::nothing())
            }
            Step::Switch(step) => {
                self.mode = step.mode();
                Ok(Observation::nothing())
            }
            Step::Load(step) => {
                let mode = self.mode;
                Ok(load::run(step, mode, self.edge(&step.edge)?, now))
            }
            Step::Tokens(step) => {
                let budget = self.edge(&step.edge)?.state.budget.as_ref();
                let budget = budget.ok_or("cannot count the tokens of an edge without a budget")?;
                Ok([Fact::Tokens(budget.balance(now))].into())
            }
            Step::Gate(step) => {
                let gate = self.edge(&step.edge)?.state.gate;
                let share = Fact::GateShare(gate.efficacy_permille());
                Ok([share, Fact::GatePasses(gate.allowed_permille())].into())
            }
            Step::Brake(step) => {
                let brake = &mut self.edge(&step.edge)?.state.brake;
                let event = match brake.take_event() {
                    None => BrakeSeen::None,
                    Some(onus_core::BrakeEvent::Raised) => BrakeSeen::Raised,
                    Some(onus_core::BrakeEvent::Halved) => BrakeSeen::Halved,
                };
                Ok([Fact::BrakeEvent(event), Fact::Halvings(brake.halvings())].into())
            }
            Step::Lot(step) => Ok([Fact::Lot(Lot::of_trace_id(step.trace.0).number())].into()),
            Step::Judge(step) => {
                let failures = EdgePolicy::default().failures;
                Ok([Fact::Failure(failures.contains(step.error.0))].into())
            }
            Step::Criteria(step) => {
                Ok([Fact::Met(criteria_met(step.attempts, step.ending))].into())
            }
        }
    }

    fn edge(&mut self, name: &str) -> Result<&mut HeldEdge, Unsupported> {
        self.edges.get_mut(name).ok_or_else(|| format!("knows no edge `{name}`").into())
    }

    /// A call with its edge.
    fn made(&mut self, call: Option<&String>) -> Result<(&mut HeldEdge, &mut Made), Unsupported> {
        let name = call.unwrap_or(&self.latest);
        let unknown = || format!("knows no call `{name}`");
        let made = self.calls.get_mut(name).ok_or_else(unknown)?;
        let edge = self.edges.get_mut(&made.edge).ok_or_else(unknown)?;
        Ok((edge, made))
    }

    fn call(&mut self, step: &Call) -> Result<Observation, Unsupported> {
        let now = self.now;
        let (mode, lot) = (self.mode, self.request.lot);
        let marked = step.tied && self.request.inbound.is_marked();
        let within = step.within.map(|span| now.saturating_add(span.0));
        let deadlines = [self.request.deadline, within];
        let edge = self.edge(&step.edge)?;
        if let Some(budget) = &mut edge.state.budget {
            budget.on_calls(1, now);
        }
        let terms = Terms {
            arm: mode.arm(lot, edge.state.brake.halvings()),
            marked,
            method: step.method.into(),
            deadline: deadlines.into_iter().flatten().min(),
        };
        let (id, class) = (edge.id, edge.setup.class);
        let slot = if step.tied { self.request.inbound.on_started(id, class) } else { None };
        self.request.untied_calls |= slot.is_none();
        let outbound = OutboundCall::new(terms);
        step.name().clone_into(&mut self.latest);
        let made = Made { edge: step.edge.clone(), slot, outbound };
        self.calls.insert(step.name().to_owned(), made);
        Ok([Fact::Arm(terms.arm)].into())
    }

    fn sent(&mut self, step: &Sent) -> Result<Observation, Unsupported> {
        let now = self.now;
        let (_, made) = self.made(step.call.as_ref())?;
        let outbound = &mut made.outbound;
        if let Err(stop) = outbound.may_send(|| now) {
            return Ok([Fact::Then(Then::Stop(stop))].into());
        }
        let mark = Fact::Mark(outbound.mark());
        let allows = outbound.time_for_attempt(None, now).map(Fact::Allows);
        outbound.on_sent();
        self.report(step.call.as_ref())?;
        Ok(Observation([mark].into_iter().chain(allows).collect()))
    }

    /// Tells the request how a call's attempts stand.
    fn report(&mut self, call: Option<&String>) -> Result<(), Unsupported> {
        let (_, made) = self.made(call)?;
        let (slot, tries) = (made.slot, *made.outbound.tries());
        self.request.tell(slot, |inbound, slot| inbound.on_attempt(slot, &tries));
        Ok(())
    }

    fn not_sent(&mut self, step: &NotSent) -> Result<Observation, Unsupported> {
        let now = self.now;
        let (_, made) = self.made(step.call.as_ref())?;
        let slot = made.slot;
        let (stop, seen) = match step.because {
            Because::Breaker | Because::Limit => (Stop::Gated, Observation::nothing()),
            Because::Deadline => match made.outbound.may_send(|| now) {
                Ok(()) => return Ok([Fact::Then(Then::Retry)].into()),
                Err(stop) => (stop, [Fact::Then(Then::Stop(stop))].into()),
            },
        };
        self.request.tell(slot, |inbound, slot| inbound.on_failed(slot, stop));
        Ok(seen)
    }

    fn failed(&mut self, step: &Failed) -> Result<Observation, Unsupported> {
        let now = self.now;
        let (edge, made) = self.made(step.call.as_ref())?;
        let (policy, state) = (&edge.policy, &mut edge.state);
        let outbound = &mut made.outbound;
        let verdict = outbound.on_failure(&step.failure(), policy, state, now, step.draws.draw());
        let slot = made.slot;
        let (then, wait) = match verdict {
            Verdict::Retry(retry) => {
                let probe = retry.cause == onus_core::RetryCause::Probe;
                (if probe { Then::Probe } else { Then::Retry }, Some(Fact::Wait(retry.after)))
            }
            Verdict::Stop(stop) => (Then::Stop(stop), None),
        };
        let tries = *outbound.tries();
        let shadow = match verdict {
            Verdict::Retry(retry) => retry.shadow,
            Verdict::Stop(_) => tries.shadow,
        };
        self.report(step.call.as_ref())?;
        if let Verdict::Stop(stop) = verdict {
            self.request.tell(slot, |inbound, slot| inbound.on_failed(slot, stop));
        }
        let facts = [Fact::Then(then), Fact::Shadow(shadow)];
        let reads = tries.last.map(Fact::Reads);
        Ok(Observation(facts.into_iter().chain(reads).chain(wait).collect()))
    }

    fn ok(&mut self, call: Option<&String>) -> Result<Observation, Unsupported> {
        let now = self.now;
        let (edge, made) = self.made(call)?;
        made.outbound.on_success(&edge.policy, &mut edge.state, now);
        if let Some(budget) = &mut edge.state.budget {
            budget.on_successes(1, now);
        }
        let slot = made.slot;
        self.report(call)?;
        self.request.tell(slot, |inbound, slot| inbound.on_ok(slot));
        Ok(Observation::nothing())
    }

    fn repeat(&mut self, step: &Repeat) -> Result<Observation, Unsupported> {
        let name = step.call.as_ref().unwrap_or(&self.latest);
        let made = self.calls.get_mut(name).ok_or_else(|| format!("knows no call `{name}`"))?;
        let slot = made.slot.ok_or("cannot tell a repeat from a call of its own without a tie")?;
        let tries = self.request.inbound.on_repeated(slot);
        made.outbound = OutboundCall::repeated(*made.outbound.terms(), tries);
        Ok(Observation::nothing())
    }

    fn answer(&mut self, step: &Answer) -> Observation {
        let Request { inbound, untied_calls, .. } = &self.request;
        let failed = match step.handler {
            Handler::Error => true,
            Handler::Ok => false,
            // A cancelled request gets no answer, and teaches nothing.
            Handler::Cancelled => return [Fact::Claim(None), Fact::Vetoes(false)].into(),
        };
        let mut lessons = BTreeMap::new();
        let clean = inbound.evidence(failed, |edge, outcome| {
            let name = self.edges.iter().find(|(_, held)| held.id == edge);
            lessons.extend(name.map(|(name, _)| (name.clone(), outcome)));
        });
        let mut facts = vec![Fact::Clean(clean), Fact::Teaches(lessons)];
        let at = Circumstances {
            shield: self.shield.is_some_and(|shield| shield.holds(self.now)),
            silent_claims: self.silent_claims,
            untied_calls: *untied_calls,
        };
        let verdict = failed.then(|| inbound.claim(at)).flatten();
        facts.push(Fact::Claim(verdict.map(|verdict| verdict.claim)));
        facts.push(Fact::Vetoes(verdict.is_some_and(|verdict| verdict.vetoes)));
        if let Some(verdict) = verdict {
            facts.push(Fact::Reason(verdict.reason));
            let deciding = self
                .calls
                .iter()
                .find(|(_, made)| verdict.deciding.is_some() && made.slot == verdict.deciding);
            let deciding = deciding.map_or_else(|| "self".to_owned(), |(name, _)| name.clone());
            facts.push(Fact::Deciding(deciding));
        }
        Observation(facts)
    }
}

impl Request {
    fn new(mode: Mode, step: &Arrive, now: Timestamp) -> Self {
        // A request without a trace id is drawn at random; here it is always in the share.
        let lot = step.trace.map_or_else(|| Lot::of_random(0), |trace| Lot::of_trace_id(trace.0));
        let arm: Arm = mode.arm(lot, 0);
        Self {
            inbound: InboundCall::new(arm, step.mark && !arm.is_off()),
            lot,
            deadline: step.deadline.map(|span| now.saturating_add(span.0)),
            untied_calls: false,
        }
    }

    /// Tells the request of a call that is tied to it.
    fn tell(&mut self, slot: Option<SlotId>, tell: impl FnOnce(&mut InboundCall, SlotId)) {
        if let Some(slot) = slot {
            tell(&mut self.inbound, slot);
        }
    }
}
