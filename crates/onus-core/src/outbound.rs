//! One logical call of a caller: its attempts, and the decision after each failed one.

use core::time::Duration;

use crate::claim::{CalleeClaim, Claim};
use crate::criteria::{Ending, criteria_met};
use crate::deadline::{time_for_callee, time_for_transport};
use crate::decision::{Facts, PushbackFact, Stop, decide, decide_unsuppressed};
use crate::draw::Draw;
use crate::edge::EdgeState;
use crate::error::CallError;
use crate::mode::{Arm, Ownership};
use crate::policy::{EdgePolicy, MethodKind};
use crate::time::Timestamp;

/// One logical call: 1 to max attempts at one answer.
///
/// The host reports each attempt with [`Self::on_sent`] and its end with [`Self::on_failure`] or
/// [`Self::on_success`]; the facts go in, the verdict comes out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutboundCall {
    terms: Terms,
    tries: Tries,
    /// Sends in this run of the call, for the backoff; a repeat by the application starts anew.
    sends: u32,
    probing: bool,
    /// Whether a layer below would have retried, and its own limit refused it.
    denied_below: bool,
}

/// What stays the same over all attempts of a logical call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How far ownership reaches for this call.
    pub arm: Arm,
    /// Whether the request being served carries the mark.
    pub marked: bool,
    /// What the request's method says about sending it twice.
    pub method: MethodKind,
    /// When the call must be over.
    pub deadline: Option<Timestamp>,
}

/// The attempts of a logical call so far, whoever made them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tries {
    /// Attempts by anyone: Onus, a layer below it, the application's own loop.
    pub attempts: u32,
    /// Attempts sent through this host.
    pub sent: u32,
    /// Whether an attempt is under way.
    pub in_attempt: bool,
    /// What the last ended attempt read.
    pub last: Option<CalleeClaim>,
    /// Whether an attempt got a reply.
    pub replied: bool,
    /// Whether an attempt was a probe.
    pub probed: bool,
    /// The first stop by rows 1, 4 and 8 that an observing caller passed over.
    pub shadow: Option<Stop>,
}

impl Tries {
    /// How the call stands for the claim: silence while an attempt is under way, else what the
    /// last attempt read; `None` where no attempt was made.
    #[must_use]
    pub const fn read(&self) -> Option<CalleeClaim> {
        if self.in_attempt { Some(CalleeClaim::Silent) } else { self.last }
    }

    /// The ending that the claim sees: the shadow stop of an observing caller before the real one.
    #[must_use]
    pub fn ending(&self, stop: Stop) -> Ending {
        Ending::Stopped(self.shadow.unwrap_or(stop))
    }

    /// Whether the retry criteria were met by this ending.
    #[must_use]
    pub const fn criteria_met(&self, ending: Ending) -> bool {
        criteria_met(self.attempts, ending)
    }
}

/// A failed attempt, as the host saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What went wrong.
    pub error: CallError,
    /// The claim on the reply, if there was one.
    pub claim: Option<Claim>,
    /// Which attempt the callee saw, as its reply says.
    pub attempt: Option<u32>,
    /// Whether the callee pushed back.
    pub pushback: Pushback,
    /// Whether the request can be sent again and no response has been passed on.
    pub replayable: bool,
    /// Whether the request's own body broke while it was sent.
    pub body_broke: bool,
}

impl Failure {
    /// Whether this says anything of the callee. Without a reply to a request that broke on this
    /// side it does not: the call ends without an outcome, as if it were dropped (drop-6).
    #[must_use]
    pub const fn tells_of_callee(&self) -> bool {
        self.error.is_reply() || !self.body_broke
    }
}

/// What the callee said about being called again: `grpc-retry-pushback-ms` or `Retry-After`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pushback {
    /// Nothing.
    #[default]
    None,
    /// Not at all: a negative or unparsable `grpc-retry-pushback-ms`.
    Refused,
    /// Not before this time has passed.
    After(Duration),
    /// Not at all, and beside it a wait, which counts where the refusal is Onus's own veto.
    RefusedAfter(Duration),
}

/// The decision after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Send again.
    Retry(Retry),
    /// The call has failed for good, for this reason.
    Stop(Stop),
}

/// A retry that the decision allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retry {
    /// The wait before it.
    pub after: Duration,
    /// What let it pass.
    pub cause: RetryCause,
    /// The reason for which an enforcing caller would have stopped here.
    pub shadow: Option<Stop>,
}

/// What let a retry pass: the claim of the failed attempt, or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryCause {
    /// The attempt read this claim.
    Claim(CalleeClaim),
    /// The retry is suppressed, and made to see what suppression costs.
    Probe,
}

impl RetryCause {
    /// Every value, for metric families.
    pub const ALL: [Self; 7] = [
        Self::Claim(CalleeClaim::CLAIMED),
        Self::Claim(CalleeClaim::CLAIMED_SILENT),
        Self::Claim(CalleeClaim::UNCLAIMED),
        Self::Claim(CalleeClaim::UNCLAIMED_SHIELD),
        Self::Claim(CalleeClaim::Missing),
        Self::Claim(CalleeClaim::Silent),
        Self::Probe,
    ];

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim(claim) => claim.as_str(),
            Self::Probe => "probe",
        }
    }
}

impl OutboundCall {
    /// A new logical call.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self::repeated(terms, Tries::default())
    }

    /// A repeat by the application: the same logical call goes on after `tries`.
    #[must_use]
    pub const fn repeated(terms: Terms, tries: Tries) -> Self {
        Self { terms, tries, sends: 0, probing: false, denied_below: false }
    }

    /// What stays the same over all attempts.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The attempts so far.
    #[must_use]
    pub const fn tries(&self) -> &Tries {
        &self.tries
    }

    /// Whether a failed attempt could be followed by another; if not, the host need not keep the
    /// request.
    #[must_use]
    pub fn may_retry(&self, policy: &EdgePolicy) -> bool {
        policy.retry.is_some_and(|retry| retry.allows(self.terms.method))
    }

    /// Whether the next attempt carries the mark (protocol §6).
    #[must_use]
    pub fn mark(&self) -> bool {
        !self.terms.arm.is_off()
            && (self.terms.marked || self.tries.last.is_some_and(CalleeClaim::is_unanswered))
    }

    /// Whether an attempt may leave at all; `now` is asked where the call has a deadline.
    ///
    /// # Errors
    ///
    /// [`Stop::NoTime`] where the deadline has passed.
    pub fn may_send(&self, now: impl FnOnce() -> Timestamp) -> Result<(), Stop> {
        match self.terms.deadline {
            Some(deadline) if deadline <= now() => Err(Stop::NoTime),
            Some(_) | None => Ok(()),
        }
    }

    /// The time that an attempt may say it has (protocol §6): what is left of the deadline, or the
    /// attempt's own limit where that is shorter, less the margin; `None` without either.
    #[must_use]
    pub fn time_for_attempt(&self, per_try: Option<Duration>, now: Timestamp) -> Option<Duration> {
        self.time_left(per_try, now).map(time_for_callee)
    }

    /// The time after which a transport that gives up by itself may end an attempt; `None` where
    /// [`Self::time_for_attempt`] is.
    #[must_use]
    pub fn time_for_transport(
        &self,
        per_try: Option<Duration>,
        now: Timestamp,
    ) -> Option<Duration> {
        self.time_left(per_try, now).map(time_for_transport)
    }

    fn time_left(&self, per_try: Option<Duration>, now: Timestamp) -> Option<Duration> {
        let left = self.terms.deadline.map(|deadline| deadline.saturating_since(now));
        left.into_iter().chain(per_try).min()
    }

    /// An attempt leaves the host.
    pub const fn on_sent(&mut self) {
        self.sends = self.sends.saturating_add(1);
        self.tries.sent = self.tries.sent.saturating_add(1);
        self.tries.attempts = self.tries.attempts.saturating_add(1);
        self.tries.in_attempt = true;
    }

    /// A layer below has made `attempts` attempts of the one under way so far, as the host can see
    /// for itself. What a reply says of it may be more, and then counts.
    pub fn on_attempts_below(&mut self, attempts: u32) {
        if self.tries.in_attempt {
            let before = self.tries.attempts.saturating_sub(1);
            self.tries.attempts = before.saturating_add(attempts.max(1));
        }
    }

    /// A layer below would have made another attempt, and its own budget or breaker refused it:
    /// where this host has no policy, the call ends as if its own budget had.
    pub const fn on_denied_below(&mut self) {
        self.denied_below = true;
    }

    /// The attempt under way never left the host: it is none.
    pub const fn on_not_sent(&mut self) {
        if self.tries.in_attempt {
            self.sends = self.sends.saturating_sub(1);
            self.tries.sent = self.tries.sent.saturating_sub(1);
            self.tries.attempts = self.tries.attempts.saturating_sub(1);
            self.tries.in_attempt = false;
        }
    }

    /// Whether the attempt under way is a retry by this host, so that its outcome must reach
    /// [`Self::on_success`].
    #[must_use]
    pub const fn is_retry(&self) -> bool {
        self.sends >= 2
    }

    /// The attempt under way was answered without an error.
    pub fn on_success(&mut self, policy: &EdgePolicy, edge: &mut EdgeState, now: Timestamp) {
        self.tries.in_attempt = false;
        self.record_retry(true, policy, edge, now);
    }

    /// The attempt under way failed: may the call go on?
    pub fn on_failure(
        &mut self,
        failure: &Failure,
        policy: &EdgePolicy,
        edge: &mut EdgeState,
        now: Timestamp,
        draw: Draw,
    ) -> Verdict {
        let claim = self.read(failure, policy);
        // Not where an answer breaks after its head: that retry has been recorded as it was.
        if self.tries.in_attempt && failure.tells_of_callee() {
            self.record_retry(false, policy, edge, now);
        }
        self.count(failure, claim, policy);
        if self.probing {
            // One extra attempt, and whatever it met: the retry was suppressed.
            return Verdict::Stop(Stop::Suppressed);
        }
        let after = self.backoff(failure, policy, draw);
        let facts = self.facts(failure, claim, policy, edge, after, now, draw);
        let shadow = self.shadow(&facts);
        let ownership = self.terms.arm.ownership();
        let EdgeState { budget, probes, .. } = edge;
        let mut take_token = || budget.as_mut().is_none_or(|budget| budget.try_withdraw(now));
        match decide(&facts, ownership, &mut take_token) {
            Ok(()) => Verdict::Retry(Retry { after, cause: RetryCause::Claim(claim), shadow }),
            Err(Stop::Suppressed) if self.may_probe(&facts, policy) => {
                let probe = || probes.is_due(draw, now) && take_token();
                if decide_unsuppressed(&facts, ownership, probe).is_err() {
                    return Verdict::Stop(Stop::Suppressed);
                }
                probes.on_probe(now);
                self.probing = true;
                self.tries.probed = true;
                Verdict::Retry(Retry { after, cause: RetryCause::Probe, shadow: None })
            }
            Err(Stop::NotConfigured) if self.denied_below => Verdict::Stop(Stop::BudgetDenied),
            Err(stop) => Verdict::Stop(stop),
        }
    }

    /// What the caller reads: nothing of a reply's claim in mode off and across the trust boundary.
    fn read(&self, failure: &Failure, policy: &EdgePolicy) -> CalleeClaim {
        if !failure.error.is_reply() {
            return CalleeClaim::Silent;
        }
        match failure.claim {
            Some(claim) if self.reads_replies(policy) => CalleeClaim::Reply(claim),
            Some(_) | None => CalleeClaim::Missing,
        }
    }

    const fn reads_replies(&self, policy: &EdgePolicy) -> bool {
        policy.trusted && !self.terms.arm.is_off()
    }

    /// Books the end of the attempt, and the attempts that a layer below has made of it.
    fn count(&mut self, failure: &Failure, claim: CalleeClaim, policy: &EdgePolicy) {
        let tries = &mut self.tries;
        tries.in_attempt = false;
        tries.last = Some(claim);
        tries.replied |= claim != CalleeClaim::Silent;
        let reported = failure.attempt.filter(|_| self.terms.arm != Arm::Off && policy.trusted);
        match (reported, policy.declared) {
            (Some(attempt), _) => tries.attempts = tries.attempts.max(attempt),
            (None, Some(declared)) if declared.errors.contains(failure.error) => {
                tries.attempts = tries.attempts.saturating_add(declared.attempts.max(1) - 1);
            }
            (None, Some(_) | None) => {}
        }
    }

    /// Teaches the gate and the brake how this retry ended.
    fn record_retry(
        &self,
        succeeded: bool,
        policy: &EdgePolicy,
        edge: &mut EdgeState,
        now: Timestamp,
    ) {
        if self.probing {
            let budget_empty = edge.budget.as_ref().is_some_and(|b| b.balance(now) == 0);
            edge.brake.record(succeeded, policy.brake_acts, budget_empty, now);
        } else if self.is_retry() {
            edge.gate.record(succeeded);
        }
    }

    fn backoff(&self, failure: &Failure, policy: &EdgePolicy, draw: Draw) -> Duration {
        let own = policy
            .retry
            .map_or(Duration::ZERO, |retry| retry.backoff.delay(self.sends, draw.jitter()));
        match failure.pushback {
            Pushback::After(asked) | Pushback::RefusedAfter(asked) => own.max(asked),
            Pushback::None | Pushback::Refused => own,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the table looks at all of them")]
    fn facts(
        &self,
        failure: &Failure,
        claim: CalleeClaim,
        policy: &EdgePolicy,
        edge: &EdgeState,
        after: Duration,
        now: Timestamp,
        draw: Draw,
    ) -> Facts {
        let time_left = self.terms.deadline.map(|deadline| deadline.saturating_since(now));
        let fits = |wait| wait <= time_left.unwrap_or(PUSHBACK_WAIT_MAX);
        let pushback = match failure.pushback {
            Pushback::Refused => PushbackFact::Refused,
            Pushback::RefusedAfter(wait) if fits(wait) || !claim.is_unclaimed() => {
                PushbackFact::Refused
            }
            Pushback::After(wait) | Pushback::RefusedAfter(wait) if !fits(wait) => {
                PushbackFact::TooLong
            }
            Pushback::After(_) | Pushback::RefusedAfter(_) | Pushback::None => PushbackFact::None,
        };
        let retry = policy.retry.as_ref();
        let needed = after.saturating_add(retry.map_or(Duration::ZERO, |r| r.min_attempt_time));
        // Stacked on another layer, the policy limits what it sends itself.
        let made = if policy.declared.is_some() { self.tries.sent } else { self.tries.attempts };
        Facts {
            claim,
            pushback,
            trusted: policy.trusted,
            covered: retry.is_some_and(|retry| retry.covers(self.terms.method, failure.error)),
            marked: self.terms.marked,
            replayable: failure.replayable,
            attempts_left: retry.is_some_and(|retry| made < retry.attempts()),
            time_left: time_left.is_none_or(|left| needed <= left),
            gate_open: !retry.is_some_and(|retry| retry.gate) || edge.gate.is_open(draw),
        }
    }

    /// The row of ownership that would have stopped an enforcing caller here. The first one over
    /// all attempts is what the claim is made from.
    fn shadow(&mut self, facts: &Facts) -> Option<Stop> {
        match self.terms.arm {
            Arm::Observe | Arm::Control => {}
            Arm::Off | Arm::Enforce => return None,
        }
        let stop = decide(facts, Ownership::Enforced, || true).err()?;
        let stop = stop.is_of_ownership().then_some(stop)?;
        self.tries.shadow.get_or_insert(stop);
        Some(stop)
    }

    /// Whether this suppressed retry may be probed at all: never behind a shield, in a marked
    /// request or by a caller that only observes.
    fn may_probe(&self, facts: &Facts, policy: &EdgePolicy) -> bool {
        facts.claim == CalleeClaim::UNCLAIMED
            && !facts.marked
            && self.terms.arm == Arm::Enforce
            && policy.retry.is_some_and(|retry| retry.probes)
    }
}

/// The longest wait that a callee may ask of a call without a deadline; nothing waits for ever.
const PUSHBACK_WAIT_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RetryPolicy;

    #[test]
    fn only_silence_after_a_broken_body_says_nothing_of_the_callee() {
        // [drop-6]
        for (error, body_broke, tells) in [
            (CallError::Reset, true, false),
            (CallError::Timeout, true, false),
            (CallError::Reset, false, true),
            (CallError::Http(503), true, true),
            (CallError::Grpc(14), true, true),
        ] {
            let failure = Failure {
                error,
                claim: None,
                attempt: None,
                pushback: Pushback::None,
                replayable: false,
                body_broke,
            };
            assert_eq!(failure.tells_of_callee(), tells, "{error} {body_broke}");
        }
    }

    #[test]
    fn attempts_that_the_host_sees_below_count_with_those_that_a_reply_tells() {
        // [attempt-2]; sends, attempts seen of the last one, attempt in the reply.
        for (sends, seen, told, attempts) in [
            (1, None, None, 1),
            (1, Some(3), None, 3),
            (1, Some(3), Some(1), 3),
            (1, Some(2), Some(3), 3),
            (1, Some(0), None, 1),
            (2, Some(3), None, 4),
            (1, Some(u32::MAX), None, u32::MAX),
        ] {
            let policy = EdgePolicy::default();
            let mut edge = EdgeState::new(&policy);
            let mut call = OutboundCall::new(Terms {
                arm: Arm::Enforce,
                marked: false,
                method: MethodKind::Safe,
                deadline: None,
            });
            for _ in 0..sends {
                call.on_sent();
            }
            if let Some(seen) = seen {
                call.on_attempts_below(seen);
            }
            let failure = Failure {
                error: CallError::Http(503),
                claim: Some(Claim::Claimed),
                attempt: told,
                pushback: Pushback::None,
                replayable: false,
                body_broke: false,
            };
            let draw = Draw::from_bits(0);
            call.on_failure(&failure, &policy, &mut edge, Timestamp::ZERO, draw);
            call.on_attempts_below(9);
            assert_eq!(call.tries().attempts, attempts, "{sends} {seen:?} {told:?}");
        }
    }

    #[test]
    fn a_retry_that_a_limit_below_refused_counts_as_refused() {
        // [criteria-1]
        let pushback = Pushback::Refused;
        for (policy, claim, pushback, stop) in [
            (None, Claim::Claimed, Pushback::None, Stop::BudgetDenied),
            (None, Claim::Unclaimed, Pushback::None, Stop::Suppressed),
            (None, Claim::Claimed, pushback, Stop::Pushback),
            (RetryPolicy::new(2), Claim::Claimed, Pushback::None, Stop::NotReplayable),
        ] {
            let policy = EdgePolicy { retry: policy, ..EdgePolicy::default() };
            let mut edge = EdgeState::new(&policy);
            let mut call = OutboundCall::new(Terms {
                arm: Arm::Enforce,
                marked: false,
                method: MethodKind::Safe,
                deadline: None,
            });
            call.on_sent();
            call.on_denied_below();
            let failure = Failure {
                error: CallError::Http(503),
                claim: Some(claim),
                attempt: None,
                pushback,
                replayable: false,
                body_broke: false,
            };
            let draw = Draw::from_bits(0);
            let verdict = call.on_failure(&failure, &policy, &mut edge, Timestamp::ZERO, draw);
            assert_eq!(verdict, Verdict::Stop(stop));
            assert!(
                call.tries().criteria_met(Ending::Stopped(stop)) || stop == Stop::NotReplayable
            );
        }
    }

    #[test]
    fn an_answer_that_breaks_after_its_head_teaches_the_gate_once() {
        // [gate-1]
        let policy = EdgePolicy { retry: RetryPolicy::new(2), ..EdgePolicy::default() };
        let mut edge = EdgeState::new(&policy);
        let (now, draw) = (Timestamp::ZERO, Draw::from_bits(0));
        let fails = |error, replayable| Failure {
            error,
            claim: Some(Claim::Claimed),
            attempt: None,
            pushback: Pushback::None,
            replayable,
            body_broke: false,
        };
        let mut call = OutboundCall::new(Terms {
            arm: Arm::Enforce,
            marked: false,
            method: MethodKind::Safe,
            deadline: None,
        });
        edge.gate.record(false);
        call.on_sent();
        call.on_failure(&fails(CallError::Http(503), true), &policy, &mut edge, now, draw);
        call.on_sent();
        call.on_success(&policy, &mut edge, now);
        let taught = edge.gate;
        call.on_failure(&fails(CallError::Reset, false), &policy, &mut edge, now, draw);
        assert_eq!(edge.gate, taught);
    }
}
