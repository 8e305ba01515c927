//! One call as the filters of its stream and of its attempts see it.

use std::sync::Once;

use http::HeaderMap;
use onus_agent::classify::{self, Answer};
use onus_agent::wire::{ENVOY_RATELIMITED, GRPC_STATUS};
use onus_agent::{CallError, Draw, FailedAttempt, MethodKind, Outbound, Relay, Stop, Verdict};

use crate::block::Lines;
use crate::hub::Service;
use crate::records::{self, Filed, Read};
use crate::response_flags::{Ending, NoReply, denied_a_retry, ending, no_reply};
use crate::stream::{Block, Clock, Shared, Stream};

/// A call on its way, and the answer that comes of it.
pub(crate) struct Calling {
    /// `None` when nothing more can happen.
    call: Option<Outbound>,
    /// Where workers share no memory: the call's request, and the call's place in its record.
    relay: Option<(Filed, Relay)>,
    kind: MethodKind,
    stage: Stage,
    /// Attempts that a filter has watched.
    watched: u32,
    /// Whether heads of gRPC answers may be held.
    may_hold: bool,
    /// Whether the head of the answer has the status of its trailers and the veto, for Envoy only.
    lent: bool,
}

/// How far the call has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// An attempt is under way that no filter watches.
    Open,
    /// An attempt is under way whose filter will tell.
    Watched,
    /// So is one whose head is there, held for what comes next.
    Held,
    /// An attempt has failed, and another may follow; Envoy makes it or not.
    Failed,
    /// Answered without an error; the rest of the answer is to come.
    Ok,
    /// The call has failed for good.
    Stopped,
    /// It has for want of an answer, which can carry no veto: an attempt that follows is refused.
    Refusing,
}

impl Calling {
    pub(crate) fn new(call: Outbound, kind: MethodKind, relay: Option<(Filed, Relay)>) -> Self {
        let stage = Stage::Open;
        Self { call: Some(call), relay, kind, stage, watched: 0, may_hold: false, lent: false }
    }

    /// Lets heads of gRPC answers be held.
    pub(crate) fn let_hold(&mut self) {
        self.may_hold = true;
    }

    /// Puts what the call came to so far into the record of its request; whether it is there. The
    /// record may have been `read` just now.
    pub(crate) fn put(&mut self, shared: &dyn Shared, read: Option<Read>) -> bool {
        let Some((filed, relay)) = &mut self.relay else { return false };
        records::put(shared, filed, relay, read)
    }

    /// An attempt leaves; whether its filter is to watch it. One that follows a stop is Envoy's own,
    /// and so is one that leaves while another is under way.
    pub(crate) fn attempt_started(&mut self, stream: &mut impl Stream, service: &Service) -> bool {
        let Some(call) = &mut self.call else { return false };
        match self.stage {
            // It was told when the call started.
            Stage::Open => {}
            Stage::Failed => {
                let mut lines = Lines::read(stream, Block::Request, service);
                call.attempt_started(&mut lines.headers, || stream.now());
                lines.write(stream);
            }
            Stage::Watched | Stage::Held | Stage::Ok | Stage::Stopped | Stage::Refusing => {
                return false;
            }
        }
        self.stage = Stage::Watched;
        self.watched += 1;
        self.lent = false;
        true
    }

    /// The watched attempt is answered; the request was `sent` to its end, or not yet.
    pub(crate) fn attempt_answered(&mut self, lines: &mut Lines, sent: bool, stream: &impl Stream) {
        if self.stage != Stage::Watched {
            return;
        }
        match self.classify(lines) {
            Answer::Ok => self.succeeded(stream),
            // Envoy cannot retry what it has begun to hand on.
            Answer::Pending => {
                self.stage = if self.may_hold && sent { Stage::Held } else { Stage::Open };
            }
            Answer::Failed(error) => {
                let verdict = self.failed(error, Some(lines), true, stream);
                self.tell_layer_below(verdict, lines);
            }
        }
    }

    /// Tells Envoy of a verdict in the head that it decides by.
    fn tell_layer_below(&self, verdict: Option<Verdict>, head: &mut Lines) {
        if let (Some(call), Some(verdict)) = (&self.call, verdict) {
            call.tell_layer_below(&verdict, &mut head.headers);
        }
    }

    /// Whether the head of the answer waits for what comes next.
    pub(crate) fn holds_head(&self) -> bool {
        self.stage == Stage::Held
    }

    /// A message is there, so the head goes on.
    pub(crate) fn head_released(&mut self) {
        if self.stage == Stage::Held {
            self.stage = Stage::Open;
        }
    }

    /// Trailers are there before any message, so the head goes on.
    pub(crate) fn attempt_trailed(
        &mut self,
        head: &mut Lines,
        trailers: &Lines,
        stream: &impl Stream,
    ) {
        let Some(call) = &self.call else { return };
        let failures = call.edge().policy().failures;
        match classify::trailers(&trailers.headers, &failures) {
            Answer::Ok | Answer::Pending => self.stage = Stage::Open,
            Answer::Failed(error) => {
                if let Some(status) = trailers.headers.get(&GRPC_STATUS) {
                    head.headers.insert(&GRPC_STATUS, status.clone());
                }
                self.lent = true;
                let verdict = self.failed(error, Some(trailers), true, stream);
                self.tell_layer_below(verdict, head);
            }
        }
    }

    /// The watched attempt ended without an answer.
    pub(crate) fn attempt_lost(&mut self, clock: &impl Clock) {
        if !matches!(self.stage, Stage::Watched | Stage::Held) {
            return;
        }
        match self.failed(CallError::Reset, None, true, clock) {
            Some(Verdict::Stop(stop)) if stop.is_refusal() => self.stage = Stage::Refusing,
            Some(Verdict::Retry(_) | Verdict::Stop(_)) | None => {}
        }
    }

    /// Whether an attempt that leaves is to be refused.
    pub(crate) fn refuses(&self) -> bool {
        self.stage == Stage::Refusing
    }

    /// The answer is there that the application gets.
    pub(crate) fn answered(&mut self, lines: &mut Lines, stream: &impl Stream) {
        self.note_unwatched(stream);
        match self.stage {
            Stage::Open | Stage::Watched | Stage::Held => self.finally_answered(lines, stream),
            Stage::Failed => self.not_retried(),
            // A veto cannot stop a retry after silence, and this one was worth it.
            Stage::Stopped | Stage::Refusing if self.classify(lines) == Answer::Ok => {
                self.succeeded(stream);
            }
            Stage::Ok | Stage::Stopped | Stage::Refusing => {}
        }
        if std::mem::take(&mut self.lent) {
            lines.headers.remove(&GRPC_STATUS);
            lines.headers.remove(&ENVOY_RATELIMITED);
        }
        if let Some(call) = &self.call {
            call.hide_from_application(&mut lines.headers);
        }
        if let Some(shared) = stream.shared() {
            self.put(shared, None);
        }
    }

    /// The trailers of that answer are there.
    pub(crate) fn trailed(&mut self, lines: &mut Lines, stream: &impl Stream) {
        let Some(call) = &self.call else { return };
        if self.stage == Stage::Open {
            let failures = call.edge().policy().failures;
            match classify::trailers(&lines.headers, &failures) {
                Answer::Ok | Answer::Pending => self.succeeded(stream),
                Answer::Failed(error) => {
                    self.note_attempts(stream);
                    self.failed(error, Some(lines), false, stream);
                }
            }
        }
        if let Some(call) = &self.call {
            call.hide_from_application(&mut lines.headers);
        }
        if let Some(shared) = stream.shared() {
            self.put(shared, None);
        }
    }

    /// The answer has been handed on to its end.
    pub(crate) fn over(&mut self) {
        self.call = None;
    }

    /// The stream is over, however it ended.
    pub(crate) fn end(&mut self, stream: &impl Stream) {
        if self.call.is_none() {
            return;
        }
        let flags = stream.response_flags();
        let ending = flags.map_or(Ending::CallerGone, ending);
        let judged = matches!(self.stage, Stage::Ok | Stage::Stopped | Stage::Refusing);
        if judged && ending == Ending::Whole {
            self.over();
            return;
        }
        match no_reply(flags.unwrap_or(0)).filter(|_| ending == Ending::Broken) {
            Some(NoReply::Failed(error)) if self.stage == Stage::Ok => {
                self.failed(error, None, false, stream);
            }
            // Given up by the application: dropped, it is judged by what it came to so far.
            Some(_) | None => {
                self.note_unwatched(stream);
                self.note_attempts(stream);
            }
        }
        if self.call.take().is_some()
            && let Some(shared) = stream.shared()
        {
            self.put(shared, None);
        }
    }

    fn classify(&self, lines: &Lines) -> Answer {
        let Some(call) = &self.call else { return Answer::Ok };
        let failures = call.edge().policy().failures;
        classify::head(self.kind, lines.status, &lines.headers, &failures)
    }

    fn finally_answered(&mut self, lines: &Lines, stream: &impl Stream) {
        self.tell_unwatched();
        match self.classify(lines) {
            Answer::Pending => self.stage = Stage::Open,
            Answer::Ok => self.succeeded(stream),
            Answer::Failed(error) => {
                let flags = stream.response_flags().unwrap_or(0);
                let is_reply = stream.is_reply().unwrap_or(true);
                self.note_attempts(stream);
                if let Some(call) = self.call.as_mut().filter(|_| is_reply && denied_a_retry(flags))
                {
                    call.denied_below();
                }
                match no_reply(flags).filter(|_| !is_reply) {
                    Some(NoReply::Failed(error)) => {
                        self.failed(error, None, false, stream);
                    }
                    Some(NoReply::Refused(stop)) => self.refused(stop),
                    None => {
                        self.failed(error, Some(lines), false, stream);
                    }
                }
            }
        }
    }

    /// Limits on retries that nobody holds: told once.
    fn tell_unwatched(&self) {
        static TOLD: Once = Once::new();
        if self.watched == 0 && self.call.as_ref().is_some_and(Outbound::may_retry) {
            TOLD.call_once(|| {
                tracing::warn!(
                    "onus: a callee has `retry`, and no filter of attempts saw the call: put the \
                     filter `attempt` into the router's upstream_http_filters"
                );
            });
        }
    }

    fn succeeded(&mut self, stream: &impl Stream) {
        self.note_attempts(stream);
        if let Some(call) = &mut self.call {
            call.ok(false, || stream.now());
        }
        self.stage = Stage::Ok;
    }

    fn failed(
        &mut self,
        error: CallError,
        lines: Option<&Lines>,
        replayable: bool,
        clock: &impl Clock,
    ) -> Option<Verdict> {
        let failed = FailedAttempt {
            error,
            headers: lines.map(|lines| &lines.headers),
            replayable,
            body_broke: false,
            wall: clock.wall(),
        };
        let draw = Draw::from_bits(clock.bits());
        let verdict = self.call.as_mut()?.attempt_failed(&failed, clock.now(), draw);
        self.stage = match verdict {
            Verdict::Retry(_) => Stage::Failed,
            Verdict::Stop(_) => Stage::Stopped,
        };
        Some(verdict)
    }

    /// Another attempt was allowed, and Envoy made none.
    fn not_retried(&mut self) {
        self.refused(Stop::NotConfigured);
    }

    fn refused(&mut self, stop: Stop) {
        if let Some(call) = &mut self.call {
            call.refused(stop);
        }
        self.stage = Stage::Stopped;
    }

    /// Envoy has made attempts after the last one that was watched: where it left no place for the
    /// call's number, or made the attempt before it was rid of the last one.
    fn note_unwatched(&mut self, stream: &impl Stream) {
        let made = stream.attempts().unwrap_or(0);
        if self.stage == Stage::Failed
            && made > self.watched
            && let Some(call) = &mut self.call
        {
            call.attempt_started(&mut HeaderMap::new(), || stream.now());
            self.stage = Stage::Open;
        }
    }

    /// Where no filter watches the attempts, Envoy's count of them is all that is known.
    fn note_attempts(&mut self, stream: &impl Stream) {
        if self.stage == Stage::Open
            && let (Some(call), Some(attempts)) = (&mut self.call, stream.attempts())
        {
            call.attempts_below(attempts.saturating_sub(self.watched));
        }
    }
}
