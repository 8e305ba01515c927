//! One logical call of a caller: its attempts, and the decision after each failed one.

mod attempts;
mod verdict;

use core::time::Duration;

use crate::claim::CalleeClaim;
use crate::deadline::{time_for_callee, time_for_transport};
use crate::decision::{Facts, PushbackFact, Stop, decide, decide_unsuppressed};
use crate::draw::Draw;
use crate::edge::EdgeState;
use crate::mode::{Arm, Ownership};
use crate::policy::{EdgePolicy, MethodKind};
use crate::time::Timestamp;

pub use self::attempts::{Failure, Pushback, Tries};
pub use self::verdict::{Retry, RetryCause, Verdict};

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

    /// How many attempts there were before the one under way, as callees are told that speak gRPC
    /// (attempt-12). `told` is what the application says of them, a retry of its own included: its
    /// number counts what this host has sent before, but for the attempts of this run.
    #[must_use]
    pub fn previous_attempts(&self, told: u32) -> u32 {
        let since = self.sends.saturating_sub(1);
        told.saturating_add(since).max(self.tries.sent.saturating_sub(1))
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
mod tests;
