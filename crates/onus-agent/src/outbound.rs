//! One logical call of this service, as the hosts hold it.

mod below;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use onus_core::{
    Arm, BrakeEvent, CalleeClaim, Draw, Failure, MethodKind, OutboundCall, RetryCause, SlotId,
    Stop, Terms, Timestamp, Verdict,
};

use crate::agent::Agent;
use crate::call_facts::{CallOutcome, CallStart, FailedAttempt};
use crate::counters::Place;
use crate::edges::Edge;
use crate::inbound::{CallIdentity, Inbound, Origin, Relay};
use crate::wire::{self, Carried, ParsedClaim};

/// One logical call. Dropped without an outcome, it counts as abandoned.
pub struct Outbound {
    owner: Owner,
    edge: Arc<Edge>,
    call: OutboundCall,
    identity: CallIdentity,
    /// What the application's request carries.
    carried: Carried,
    /// See [`CallStart::timed_below`].
    timed_below: bool,
    stage: Stage,
    /// What let the retry pass that is under way, or waits to be sent, and what an enforcing caller
    /// would have stopped it for.
    retry: Option<(RetryCause, Option<Stop>)>,
    /// Boxed, as few calls have one and all are moved about.
    origin: Option<Box<Origin>>,
}

/// What the call belongs to.
enum Owner {
    /// A request, as one of its calls.
    Request(Inbound, SlotId),
    /// No request that is known.
    Nobody(Arc<Agent>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first attempt is about to leave.
    Unsent,
    /// An attempt that has no outcome, or the wait before the next.
    Open,
    /// Answered without an error.
    Ok,
    /// Answered without an error, and the answer has been read to its end.
    Closed,
    Failed,
}

impl Outbound {
    pub(crate) fn new(
        agent: &Arc<Agent>,
        edge: Arc<Edge>,
        inbound: Option<Inbound>,
        start: CallStart,
        headers: &HeaderMap,
        now: impl Fn() -> Timestamp,
    ) -> Self {
        let halvings = edge.lasting.halvings.load(Ordering::Relaxed);
        let carried = Carried::by(headers);
        let terms = |tied: Option<&Inbound>| {
            let arm = match tied {
                Some(inbound) => inbound.arm_on(halvings),
                None => agent.arm_of_untied(headers, start.bits, halvings),
            };
            // The edge's limit, what the application itself allows, and what its caller does.
            let hands_on_time = carried.time && arm.hands_on_time();
            let allowed = if hands_on_time { wire::time_allowed(headers) } else { None };
            let limits = edge.timeouts.overall.into_iter().chain(allowed);
            let ends = limits.map(|limit| now().saturating_add(limit));
            Terms {
                arm,
                marked: tied.is_some_and(Inbound::is_marked),
                method: start.method,
                deadline: ends.chain(tied.and_then(Inbound::deadline)).min(),
            }
        };
        let begin = |tied: Option<&Inbound>, repeated| {
            let mut call = match repeated {
                Some(tries) => {
                    edge.lasting.counters.repeats.add();
                    OutboundCall::repeated(terms(tied), tries)
                }
                None => {
                    edge.count_call();
                    OutboundCall::new(terms(tied))
                }
            };
            if call.may_send(&now).is_ok() {
                call.on_sent();
            }
            call
        };
        let mut identity = CallIdentity {
            callee: edge.key.callee,
            head: start.head,
            body: start.body,
            previous: 0,
        };
        if carried.attempt_or_mark && start.method == MethodKind::Grpc {
            identity.previous = wire::previous_attempts(headers);
        }
        let tied = inbound.and_then(|inbound| {
            let start = |tries| begin(Some(&inbound), tries);
            let (slot, call) = inbound.call_started(&edge, identity, start)?;
            Some((inbound, slot, call))
        });
        let (owner, call) = match tied {
            Some((inbound, slot, call)) => (Owner::Request(inbound, slot), call),
            None => {
                agent.count_untied(&edge);
                (Owner::Nobody(agent.clone()), begin(None, None))
            }
        };
        let timed_below = start.timed_below;
        let (stage, retry, origin) = (Stage::Unsent, None, None);
        Self { owner, edge, call, identity, carried, timed_below, stage, retry, origin }
    }

    /// The edge of the call.
    #[must_use]
    pub fn edge(&self) -> &Arc<Edge> {
        &self.edge
    }

    /// Whether the call belongs to a request.
    #[must_use]
    pub fn is_tied(&self) -> bool {
        match self.owner {
            Owner::Request(..) => true,
            Owner::Nobody(_) => false,
        }
    }

    /// How the record of the call's request follows the call, where another worker serves it.
    #[must_use]
    pub fn relay(&self) -> Option<Relay> {
        match &self.owner {
            Owner::Request(inbound, slot) => inbound.relay(*slot),
            Owner::Nobody(_) => None,
        }
    }

    /// When all attempts together must be over.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.call.terms().deadline
    }

    /// Whether a failed attempt could be followed by another; if not, the host need not keep the
    /// request.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        self.call.may_retry(&self.edge.policy)
    }

    /// The body of the request has been seen to its end: a repeat can be recognised by it.
    pub fn set_body_digest(&mut self, digest: u64) {
        self.identity.body = Some(digest);
    }

    /// An attempt leaves: gives its headers the mark and the attempt's number, and takes out what
    /// the application copied from elsewhere.
    ///
    /// `now` is asked where the attempt has a time limit, which its headers then say.
    pub fn attempt_started(&mut self, headers: &mut HeaderMap, now: impl FnOnce() -> Timestamp) {
        if self.stage == Stage::Unsent {
            // Counted when the call started.
            self.stage = Stage::Open;
        } else {
            self.retry_sent();
        }
        let per_try = self.edge.timeouts.per_try;
        let limited = per_try.is_some() || self.deadline().is_some();
        if limited && self.arm().hands_on_time() {
            self.write_time_allowed(headers, per_try, now());
        }
        if self.arm().is_off() {
            return;
        }
        if !self.edge.policy.trusted {
            self.agent().claims().strip_untrusted(headers);
            return;
        }
        let mark = self.call.mark();
        let attempt = self.call.tries().sent;
        if mark || attempt > 1 || self.carried.attempt_or_mark {
            wire::write_mark(headers, mark);
            wire::write_attempt(headers, attempt);
        }
        // Observing shows nothing but Onus's own headers.
        if self.arm() == Arm::Enforce && self.call.terms().method == MethodKind::Grpc {
            let previous = self.call.previous_attempts(self.identity.previous);
            wire::write_previous_attempts(headers, previous);
        }
    }

    fn write_time_allowed(
        &self,
        headers: &mut HeaderMap,
        per_try: Option<Duration>,
        now: Timestamp,
    ) {
        let grpc = self.call.terms().method == MethodKind::Grpc;
        let apart = grpc && self.timed_below;
        if let Some(allowed) = self.call.time_for_attempt(per_try, now) {
            wire::write_time_allowed(headers, allowed, grpc && !apart);
        }
        if apart && let Some(longer) = self.call.time_for_transport(per_try, now) {
            wire::write_time_allowed(headers, longer, true);
        }
    }

    fn retry_sent(&mut self) {
        self.call.on_sent();
        if let Owner::Request(inbound, slot) = &self.owner {
            inbound.on_attempt(*slot, self.call.tries());
        }
        if let Some((cause, shadow)) = self.retry {
            let counters = self.edge.lasting.counters.arm(self.arm());
            counters.retries[cause.place()].add();
            if let Some(shadow) = shadow {
                counters.shadows[shadow.place()].add();
            }
        }
    }

    /// The attempt under way failed: may the call go on?
    pub fn attempt_failed(
        &mut self,
        failed: &FailedAttempt<'_>,
        now: Timestamp,
        draw: Draw,
    ) -> Verdict {
        let failure = self.read(failed);
        let agent = self.agent().clone();
        let decided = agent.guarded(|| {
            let edge = &self.edge;
            let mut memory = edge.memory(now);
            let state = &mut memory.state;
            let verdict = self.call.on_failure(&failure, &edge.policy, state, now, draw);
            (verdict, edge.follow_brake(&mut state.brake))
        });
        let (verdict, event) = match decided {
            Some(decided) => decided,
            // The answer passes as it came.
            None => {
                self.fault();
                (Verdict::Stop(Stop::NotConfigured), None)
            }
        };
        self.book(&verdict, failure.tells_of_callee());
        self.agent().tell_verdict(self, &failure, &verdict);
        if let Some(event) = event {
            self.tell_brake(event);
        }
        verdict
    }

    /// What the reply says, as the core takes it. Remembers the origin that it names.
    fn read(&mut self, failed: &FailedAttempt<'_>) -> Failure {
        let mut failure = Failure {
            error: failed.error,
            claim: None,
            attempt: None,
            pushback: onus_core::Pushback::None,
            replayable: failed.replayable,
            body_broke: failed.body_broke,
        };
        self.origin = None;
        let Some(headers) = failed.headers else { return failure };
        failure.pushback = wire::pushback(headers, failed.wall);
        if self.arm().is_off() || !self.edge.policy.trusted {
            return failure;
        }
        match self.agent().claims().read(headers) {
            ParsedClaim::Valid(text) => {
                failure.claim = Some(text.claim);
                failure.attempt = text.attempt;
                self.notice_foreign_retries(text.attempt);
                let hops = text.hops.unwrap_or(0);
                self.origin = text.origin.map(|service| Box::new(Origin { service, hops }));
            }
            ParsedClaim::Invalid(why) => {
                self.edge.lasting.counters.invalid_claims[why.place()].add()
            }
            ParsedClaim::Absent => {}
        }
        failure
    }

    /// A callee that saw more attempts than this host knows of tells of a layer below that retries.
    fn notice_foreign_retries(&self, seen: Option<u32>) {
        let more = seen.is_some_and(|seen| seen > self.call.tries().attempts);
        if more
            && self.edge.policy.declared.is_none()
            && !self.edge.lasting.foreign.swap(true, Ordering::Relaxed)
        {
            self.agent().tell_foreign_retries(&self.edge);
        }
    }

    /// Books what was decided. A call that ends without a word of its callee has no outcome.
    fn book(&mut self, verdict: &Verdict, has_outcome: bool) {
        let counters = self.edge.lasting.counters.arm(self.arm());
        match verdict {
            Verdict::Retry(retry) => {
                self.retry = Some((retry.cause, retry.shadow));
                if let Owner::Request(inbound, slot) = &self.owner {
                    inbound.on_attempt(*slot, self.call.tries());
                }
            }
            Verdict::Stop(stop) => {
                counters.stops[stop.place()].add();
                if has_outcome { &counters.failed } else { &counters.abandoned }.add();
                self.fail(has_outcome.then_some(*stop));
            }
        }
    }

    /// The call cannot be sent, or not once more, for this reason. An attempt under way was refused
    /// on this side, by a breaker or a limit, and is none.
    pub fn refused(&mut self, stop: Stop) {
        self.call.on_not_sent();
        self.book(&Verdict::Stop(stop), true);
    }

    /// Whether an attempt may leave at all; `now` is asked where the call has a deadline.
    ///
    /// # Errors
    ///
    /// [`Stop::NoTime`] where the deadline has passed.
    pub fn may_send(&self, now: impl FnOnce() -> Timestamp) -> Result<(), Stop> {
        self.call.may_send(now)
    }

    /// The attempt under way was answered without an error; `closed` if there is nothing more of
    /// the answer to read. If its body breaks, report [`Self::attempt_failed`] as well.
    pub fn ok(&mut self, closed: bool, now: impl FnOnce() -> Timestamp) {
        self.stage = if closed { Stage::Closed } else { Stage::Ok };
        if self.call.is_retry() {
            self.retry_succeeded(now());
        }
        if let Owner::Request(inbound, slot) = &self.owner {
            inbound.call_ok(*slot, closed);
        }
    }

    fn retry_succeeded(&mut self, now: Timestamp) {
        let agent = self.agent().clone();
        let event = agent.guarded(|| {
            let mut memory = self.edge.memory(now);
            self.call.on_success(&self.edge.policy, &mut memory.state, now);
            self.edge.follow_brake(&mut memory.state.brake)
        });
        match event {
            Some(Some(event)) => self.tell_brake(event),
            Some(None) => {}
            None => self.fault(),
        }
    }

    /// Takes what is between Onus and the callee out of a header block that goes to the
    /// application.
    pub fn hide_from_application(&self, headers: &mut HeaderMap) {
        if self.arm().is_off() {
            return;
        }
        let claims = self.agent().claims();
        let carries = |name: &HeaderName| wire::line(headers, name).is_some();
        let has_claim = carries(&wire::ONUS_CLAIM) || claims.alias.as_ref().is_some_and(carries);
        if !self.edge.policy.trusted {
            claims.strip_untrusted(headers);
        } else if self.is_failed() || has_claim {
            // A success has no claim to hide, nearly always.
            let read = claims.read(headers);
            claims.hide_from_handler(headers, &read);
        }
    }

    /// How the call failed for good; `None` while it has not.
    #[must_use]
    pub fn outcome(&self, verdict: &Verdict) -> Option<CallOutcome> {
        let Verdict::Stop(stop) = verdict else { return None };
        let tries = self.call.tries();
        let origin = self.origin.as_ref().map(|origin| Origin {
            hops: origin.hops.saturating_add(1),
            service: origin.service.clone(),
        });
        Some(CallOutcome {
            stop: *stop,
            read: tries.last.unwrap_or(CalleeClaim::Silent),
            attempts: tries.attempts,
            origin,
        })
    }

    /// How far ownership reaches for this call.
    #[must_use]
    pub fn arm(&self) -> Arm {
        self.call.terms().arm
    }

    pub(crate) fn call(&self) -> &OutboundCall {
        &self.call
    }

    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    fn agent(&self) -> &Arc<Agent> {
        match &self.owner {
            Owner::Request(inbound, _) => inbound.agent(),
            Owner::Nobody(agent) => agent,
        }
    }

    /// Something broke inside Onus on behalf of the call.
    fn fault(&self) {
        if let Owner::Request(inbound, _) = &self.owner {
            inbound.fault();
        }
    }

    fn is_failed(&self) -> bool {
        self.stage == Stage::Failed
    }

    fn fail(&mut self, stop: Option<Stop>) {
        self.stage = Stage::Failed;
        if let Owner::Request(inbound, slot) = &self.owner {
            inbound.call_failed(
                *slot,
                self.call.tries(),
                stop,
                self.identity,
                self.origin.as_deref().cloned(),
            );
        }
    }

    fn tell_brake(&self, event: BrakeEvent) {
        self.agent().tell_brake(&self.edge, event);
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        let counters = self.edge.lasting.counters.arm(self.arm());
        match self.stage {
            Stage::Unsent | Stage::Open => {
                counters.abandoned.add();
                if self.stage == Stage::Unsent {
                    // It was counted when the call started.
                    self.call.on_not_sent();
                }
                self.fail(None);
            }
            Stage::Ok | Stage::Closed => {
                counters.ok.add();
                if let Some((cause, _)) = self.retry {
                    counters.retries_ok[cause.place()].add();
                }
                self.edge.count_success();
            }
            Stage::Failed => {}
        }
        if let (Stage::Ok, Owner::Request(inbound, slot)) = (self.stage, &self.owner) {
            inbound.call_closed(*slot);
        }
    }
}
