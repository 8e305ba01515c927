//! A logical call between its attempts: who makes it, and what is kept to make it again.

use std::sync::Arc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use onus_agent::classify::{self, Answer};
use onus_agent::{
    CallError, CallOutcome, Draw, ErrorSet, FailedAttempt, MethodKind, Outbound, Stop, Timestamp,
    Verdict,
};
use tower_service::Service;

use super::body::{Awaits, Watch};
use super::peek::HELD_MAX;
use super::start::Start;
use crate::clock::{Clock, Timer};
use crate::onus::Onus;
use crate::replay::{Attempt, BoxError, DigestCell, NotReplayable, ReplayBody, Tape};

/// A logical call. It keeps what it needs of its hop and not the hop: all calls would contend for
/// one reference count.
pub(super) struct Call<S, C, B: Body> {
    pub(super) clock: Clock,
    pub(super) classify: C,
    outbound: Option<Outbound>,
    /// What is needed for another attempt; `None` where there can be none. Boxed, so that calls
    /// that are made once do not move room for it about.
    pub(super) kept: Option<Box<Kept<S, B>>>,
    /// Where it shows how a body went that is sent once.
    digest: Option<Arc<DigestCell>>,
    pub(super) kind: MethodKind,
}

/// What is needed for another attempt.
pub(super) struct Kept<S, B> {
    pub(super) service: S,
    pub(super) head: Parts,
    pub(super) tape: Tape<B>,
    /// The attempt under way, or the last one.
    pub(super) attempt: Attempt,
}

impl<S, C, B: Body> Call<S, C, B> {
    pub(super) fn new(clock: Clock, classify: C, outbound: Outbound, kind: MethodKind) -> Self {
        Self { clock, classify, outbound: Some(outbound), kept: None, digest: None, kind }
    }

    /// A call that starts when [`Self::begin`] is told its body.
    pub(super) fn unstarted(
        clock: Clock,
        classify: C,
        kept: Box<Kept<S, B>>,
        kind: MethodKind,
    ) -> Self {
        Self { clock, classify, outbound: None, kept: Some(kept), digest: None, kind }
    }

    pub(super) fn with_kept(mut self, kept: Box<Kept<S, B>>) -> Self {
        self.kept = Some(kept);
        self
    }

    pub(super) fn with_digest(mut self, digest: Option<Arc<DigestCell>>) -> Self {
        self.digest = digest;
        self
    }

    /// Starts the call now that its body has been read, or is `broken`. Returns the body of its
    /// first attempt; `None` where there can be none.
    pub(super) fn begin(
        &mut self,
        onus: &Onus,
        mut start: Start,
        broken: Option<BoxError>,
    ) -> Option<ReplayBody<B>> {
        let kept = self.kept.as_ref()?;
        start.set_body(kept.tape.digest());
        let outbound = start.begin(onus, &kept.head.headers, || self.now());
        let sendable = outbound.may_send(|| self.now()).is_ok();
        self.outbound = Some(outbound);
        let body = match broken {
            // The service below finds out as it would have by itself.
            Some(error) => Some(ReplayBody::failed(error, Attempt::FIRST)),
            None => kept.tape.attempt(Attempt::FIRST).ok(),
        };
        body.filter(|_| sendable)
    }

    /// Whether an attempt may leave at all: a wait may have taken all the time there was.
    pub(super) fn may_send(&self) -> bool {
        self.outbound.as_ref().is_none_or(|outbound| outbound.may_send(|| self.now()).is_ok())
    }

    /// Lets go of what was kept: there will be no further attempt.
    pub(super) fn release(&mut self) {
        self.kept = None;
        self.digest = None;
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The call's account, until [`Self::take`].
    pub(super) fn outbound(&mut self) -> Option<&mut Outbound> {
        self.outbound.as_mut()
    }

    /// Hands the call's account over to what comes after the response head.
    pub(super) fn watch(&mut self, awaits: Awaits) -> Option<Watch> {
        let outbound = self.outbound.take()?;
        Some(Watch { outbound, clock: self.clock, awaits })
    }

    /// What the callee's response head says about the outcome.
    pub(super) fn answer<R>(&self, response: &Response<R>) -> Answer {
        let Some(outbound) = &self.outbound else { return Answer::Ok };
        let failures = &outbound.edge().policy().failures;
        classify::head(self.kind, response.status(), response.headers(), failures)
    }

    /// The timer of a look into the response's first frame before it is handed on: [`HELD_MAX`], or
    /// the end of the call's time.
    ///
    /// `None` where nobody may look: no other attempt could be made, or something of the request is
    /// still to be sent. A client that waits for the head before it goes on must not wait for its
    /// own next message.
    pub(super) fn peek_timer(&self) -> Option<Timer> {
        let outbound = self.outbound.as_ref().filter(|outbound| outbound.may_retry())?;
        self.kept.as_ref().filter(|kept| kept.tape.is_read())?;
        let held = self.now().saturating_add(HELD_MAX);
        let ends = outbound.deadline().map_or(held, |deadline| deadline.min(held));
        self.clock.timer(ends)
    }

    /// Which answers are failures.
    pub(super) fn failures(&self) -> ErrorSet {
        let outbound = self.outbound.as_ref();
        outbound.map_or(ErrorSet::FAILURES, |outbound| outbound.edge().policy().failures)
    }

    /// The attempt under way failed: may the call go on?
    pub(super) fn failed(&mut self, error: CallError, headers: Option<&HeaderMap>) -> Verdict {
        self.note_digest();
        let now = self.now();
        let wall = self.clock.wall();
        let kept = self.kept.as_ref().map(|kept| kept.tape.replayable());
        let replayable = kept.is_some_and(|kept| kept.is_ok());
        let body_broke = kept == Some(Err(NotReplayable::Error))
            || self.digest.as_ref().is_some_and(|cell| cell.is_broken());
        let failed = FailedAttempt { error, headers, replayable, body_broke, wall };
        match &mut self.outbound {
            Some(outbound) => {
                outbound.attempt_failed(&failed, now, Draw::from_bits(fastrand::u64(..)))
            }
            None => Verdict::Stop(Stop::NotConfigured),
        }
    }

    /// The attempt cannot be made, or was refused below: it is the end.
    pub(super) fn refuse(&mut self, stop: Stop) -> Verdict {
        if let Some(outbound) = &mut self.outbound {
            outbound.refused(stop);
        }
        Verdict::Stop(stop)
    }

    /// What follows from `verdict`: the wait and the body of the next attempt, or the end.
    ///
    /// The next attempt takes the body over here, so that the failed one cannot read it to a point
    /// from where it could not be sent again.
    pub(super) fn go_on(
        &mut self,
        verdict: Verdict,
    ) -> Result<(Option<Timer>, ReplayBody<B>), Verdict> {
        let now = self.now();
        let (Verdict::Retry(retry), Some(kept)) = (verdict, &mut self.kept) else {
            return Err(verdict);
        };
        kept.attempt = kept.attempt.next();
        let Ok(body) = kept.tape.attempt(kept.attempt) else {
            return Err(self.refuse(Stop::NotReplayable));
        };
        if retry.after.is_zero() {
            return Ok((None, body));
        }
        // Nothing is sent again at once because there is no timer for the wait.
        match self.clock.timer(now.saturating_add(retry.after)) {
            Some(sleep) => Ok((Some(sleep), body)),
            None => Err(self.refuse(Stop::NoTime)),
        }
    }

    /// Whether the service below takes another attempt.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>>
    where
        S: Service<Request<ReplayBody<B>>>,
    {
        match &mut self.kept {
            Some(kept) => kept.service.poll_ready(cx),
            None => Poll::Pending,
        }
    }

    /// The request of the next attempt; `None` where nothing was kept.
    pub(super) fn request(
        &mut self,
        body: ReplayBody<B>,
    ) -> Option<(&mut S, Request<ReplayBody<B>>)> {
        let (Some(kept), Some(outbound)) = (&mut self.kept, &mut self.outbound) else {
            return None;
        };
        let mut request = Request::from_parts(kept.head.clone(), body);
        outbound.attempt_started(request.headers_mut(), || self.clock.now());
        Some((&mut kept.service, request))
    }

    /// How the call failed for good, for the response's extensions.
    pub(super) fn outcome(&self, verdict: &Verdict) -> Option<CallOutcome> {
        self.outbound.as_ref()?.outcome(verdict)
    }

    /// The timer of the attempt that starts now: its own limit or the call's, the earlier.
    pub(super) fn timer(&self) -> Option<Timer> {
        let outbound = self.outbound.as_ref()?;
        let per_try = outbound.edge().timeouts().per_try;
        if per_try.is_none() && outbound.deadline().is_none() {
            return None;
        }
        let attempt_ends = per_try.map(|per_try| self.now().saturating_add(per_try));
        let ends = [attempt_ends, outbound.deadline()].into_iter().flatten().min()?;
        self.clock.timer(ends)
    }

    /// Notes the body's digest, so that a repeat of the call can be recognised by it.
    pub(super) fn note_digest(&mut self) {
        let Some(outbound) = &mut self.outbound else { return };
        let digest = match (&self.kept, &self.digest) {
            (Some(kept), _) => kept.tape.digest(),
            (None, Some(cell)) => cell.digest(),
            (None, None) => None,
        };
        if let Some(digest) = digest {
            outbound.set_body_digest(digest);
        }
    }
}

impl<S, C, B: Body> Drop for Call<S, C, B> {
    fn drop(&mut self) {
        // A call that is given up may be repeated as well.
        self.note_digest();
    }
}
