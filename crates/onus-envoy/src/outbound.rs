//! The filter behind the application: a call and the attempts that Envoy makes of it.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;
use onus_agent::classify::{self, Answer};
use onus_agent::correlator::Token;
use onus_agent::{
    Agent, CallError, CallStart, Draw, FailedAttempt, Inbound, MethodKind, Mode, Outbound, Relay,
    trace_context,
};

use crate::block::Lines;
use crate::hub::Service;
use crate::inbound::{id_of, procedure};
use crate::records;
use crate::response_flags::{NoReply, caller_has_gone, denied_a_retry, no_reply};
use crate::stream::{Block, Shared, Stream};

/// One call of the application beside this Envoy.
pub struct OutboundFilter {
    service: Arc<Service>,
    calling: Option<Calling>,
}

struct Calling {
    call: Outbound,
    /// Where workers share no memory: the token of the call's request, and its place in the record.
    relay: Option<(Token, Relay)>,
    kind: MethodKind,
    stage: Stage,
}

/// How far the call has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No answer, or one whose status is to come.
    Open,
    /// Answered without an error; the rest of the answer is to come.
    Ok,
    /// Nothing more can happen.
    Over,
}

impl OutboundFilter {
    /// A filter for one call.
    #[must_use]
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, calling: None }
    }

    /// The call's head is there; `ends` if the call has no body.
    pub fn on_request(&mut self, stream: &mut impl Stream, ends: bool) {
        if self.service.agent().mode() == Mode::Off {
            return;
        }
        let mut lines = Lines::read(stream, Block::Request, self.service.more());
        let token = trace_context::read_token(&lines.headers);
        let (agent, inbound) = self.inbound(token, &lines, stream);
        trace_context::remove_token(&mut lines.headers);
        let kind = classify::method_kind(&lines.method, &lines.headers);
        let callee = self.service.callee(agent, &stream.cluster());
        let procedure = procedure(agent, &lines, kind, &stream.route());
        let now = || stream.now();
        let edge = agent.edge(inbound.as_ref(), callee, procedure, now);
        let start = CallStart {
            method: kind,
            head: head_hash(&lines),
            body: ends.then_some(EMPTY_BODY),
            bits: stream.bits(),
            timed_below: false,
        };
        let mut call = agent.call_started(edge, inbound, start, &lines.headers, now);
        call.attempt_started(&mut lines.headers, now);
        lines.write(stream);
        let relay = token.zip(call.relay());
        let tied = call.is_tied();
        let mut calling = Calling { call, relay, kind, stage: Stage::Open };
        if let Some(shared) = stream.shared()
            && !(tied && calling.put(shared))
        {
            records::count_untied(shared);
        }
        self.calling = Some(calling);
    }

    /// The request that the call belongs to, by its token, else by an id that is certain.
    fn inbound(
        &self,
        token: Option<Token>,
        lines: &Lines,
        stream: &impl Stream,
    ) -> (&Arc<Agent>, Option<Inbound>) {
        if let Some(shared) = stream.shared() {
            let agent = self.service.agent();
            return (agent, token.and_then(|token| records::find(shared, agent, token)));
        }
        if let Some((agent, inbound)) = token.and_then(|token| self.service.by_token(token)) {
            return (agent, Some(inbound));
        }
        let ids = self.service.ids().iter().filter_map(|name| id_of(&lines.headers, name));
        let inbound = ids.into_iter().find_map(|id| self.service.by_id(id));
        (self.service.agent(), inbound)
    }

    /// The head of the answer is there that the application gets; `ends` if there is nothing more.
    pub fn on_response(&mut self, stream: &mut impl Stream, ends: bool) {
        let Some(calling) = &mut self.calling else { return };
        let mut lines = Lines::read(stream, Block::Response, self.service.more());
        let failures = calling.call.edge().policy().failures;
        let answer = classify::head(calling.kind, lines.status, &lines.headers, &failures);
        calling.answered(answer, &mut lines, stream);
        lines.write(stream);
        if ends {
            calling.ended();
        }
    }

    /// The trailers of that answer are there.
    pub fn on_trailers(&mut self, stream: &mut impl Stream) {
        let Some(calling) = &mut self.calling else { return };
        let mut lines = Lines::read(stream, Block::Trailers, self.service.more());
        if calling.stage == Stage::Open {
            let failures = calling.call.edge().policy().failures;
            let answer = classify::trailers(&lines.headers, &failures);
            calling.answered(answer, &mut lines, stream);
        } else {
            calling.call.hide_from_application(&mut lines.headers);
        }
        lines.write(stream);
        calling.ended();
    }

    /// A part of the answer's body is there; `ends` if it is the last of the answer.
    pub fn on_body(&mut self, ends: bool) {
        if let Some(calling) = &mut self.calling
            && ends
        {
            calling.ended();
        }
    }

    /// A hook has panicked: the call goes on as if there were no filter.
    pub fn on_fault(&mut self) {
        self.service.agent().count_fault();
        self.calling = None;
    }

    /// The stream is over, however it ended.
    pub fn on_end(&mut self, stream: &impl Stream) {
        let Some(mut calling) = self.calling.take() else { return };
        if calling.stage == Stage::Over {
            return;
        }
        let flags = stream.response_flags().unwrap_or(0);
        match no_reply(flags).filter(|_| !caller_has_gone(flags)) {
            Some(NoReply::Failed(error)) if calling.stage == Stage::Ok => {
                calling.failed(error, None, stream);
            }
            // Given up by the application: dropped, it is judged by what it came to so far.
            Some(_) | None => calling.note_attempts(stream),
        }
        let Calling { call, mut relay, .. } = calling;
        drop(call);
        if let (Some(shared), Some((token, relay))) = (stream.shared(), &mut relay) {
            records::put(shared, *token, relay);
        }
    }
}

impl Calling {
    /// Puts what the call came to so far into the record of its request; whether it is there.
    fn put(&mut self, shared: &dyn Shared) -> bool {
        let Some((token, relay)) = &mut self.relay else { return false };
        records::put(shared, *token, relay)
    }

    fn answered(&mut self, answer: Answer, lines: &mut Lines, stream: &impl Stream) {
        match answer {
            Answer::Pending => {}
            Answer::Ok => {
                self.note_attempts(stream);
                self.call.ok(false, || stream.now());
                self.stage = Stage::Ok;
            }
            Answer::Failed(error) => {
                let flags = stream.response_flags().unwrap_or(0);
                let is_reply = stream.is_reply().unwrap_or(true);
                if is_reply && denied_a_retry(flags) {
                    self.call.denied_below();
                }
                match no_reply(flags).filter(|_| !is_reply) {
                    Some(NoReply::Failed(error)) => self.failed(error, None, stream),
                    Some(NoReply::Refused(stop)) => {
                        self.call.refused(stop);
                        self.stage = Stage::Over;
                    }
                    None => self.failed(error, Some(lines), stream),
                }
            }
        }
        self.call.hide_from_application(&mut lines.headers);
        if let Some(shared) = stream.shared() {
            self.put(shared);
        }
    }

    fn failed(&mut self, error: CallError, lines: Option<&Lines>, stream: &impl Stream) {
        self.note_attempts(stream);
        let failed = FailedAttempt {
            error,
            headers: lines.map(|lines| &lines.headers),
            replayable: false,
            body_broke: false,
            wall: stream.wall(),
        };
        self.call.attempt_failed(&failed, stream.now(), Draw::from_bits(stream.bits()));
        self.stage = Stage::Over;
    }

    fn note_attempts(&mut self, stream: &impl Stream) {
        if let Some(attempts) = stream.attempts() {
            self.call.attempts_below(attempts);
        }
    }

    /// The answer has been handed on to its end.
    fn ended(&mut self) {
        self.stage = Stage::Over;
    }
}

/// The digest of a body of no bytes.
const EMPTY_BODY: u64 = 0;

/// A number that is equal for requests with the same method, path and query.
fn head_hash(lines: &Lines) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    lines.method.hash(&mut hasher);
    lines.path.hash(&mut hasher);
    hasher.finish()
}
