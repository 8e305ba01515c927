//! The filter behind the application: a call and its final answer.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::FixedState;
use onus_agent::correlator::Token;
use onus_agent::{Agent, CallStart, Inbound, Mode, classify, trace_context};

use crate::block::Lines;
use crate::calling::Calling;
use crate::calls::{self, Announced};
use crate::hub::Service;
use crate::inbound::procedure;
use crate::records::{self, Found};
use crate::stream::{Block, Stream};

/// One call of the application beside this Envoy.
pub struct OutboundFilter {
    service: Arc<Service>,
    /// Shared with the filters of its attempts, if there are any: all run on one worker.
    calling: Option<Rc<RefCell<Calling>>>,
    /// Lets those filters find it.
    announced: Option<Announced>,
}

impl OutboundFilter {
    /// A filter for one call.
    #[must_use]
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, calling: None, announced: None }
    }

    /// The call's head is there; `ends` if the call has no body.
    pub fn on_request(&mut self, stream: &mut impl Stream, ends: bool) {
        let off = self.service.agent().mode() == Mode::Off;
        if off && !self.service.has_policies() {
            self.service.note_untied();
            return;
        }
        let mut lines = Lines::read(stream, Block::Request, &self.service);
        let token = trace_context::read_token(&lines.headers).filter(|_| !off);
        let (other, inbound, filed) = self.inbound(token, &lines, stream);
        let agent = other.as_ref().unwrap_or_else(|| self.service.agent());
        if !off {
            trace_context::remove_token(&mut lines.headers);
        }
        let kind = classify::method_kind(&lines.method, &lines.headers);
        let cluster = stream.cluster();
        let callee = self.service.callee(agent, &cluster);
        let procedure = procedure(agent, &lines, kind, stream);
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
        let (filed, read) = filed.unzip();
        let relay = filed.zip(call.relay());
        let may_retry = call.may_retry();
        let mut calling = Calling::new(call, kind, relay);
        if let Some(shared) = stream.shared()
            && !calling.put(shared, read)
        {
            shared.note_untied();
        }
        if may_retry && self.service.may_hold(&cluster) {
            calling.let_hold();
        }
        let calling = Rc::new(RefCell::new(calling));
        lines.write(stream);
        if may_retry {
            self.announced = calls::announce(&calling);
        }
        if let Some(announced) = &self.announced {
            stream.leave(announced.number());
        }
        self.calling = Some(calling);
    }

    /// The request that the call belongs to, by its token, else by an id that is certain; the agent
    /// that knows it if that is another than this service's; and what is in the table of it, where
    /// workers share no memory.
    fn inbound(
        &self,
        token: Option<Token>,
        lines: &Lines,
        stream: &impl Stream,
    ) -> (Option<Arc<Agent>>, Option<Inbound>, Option<Found>) {
        if let Some(shared) = stream.shared() {
            let agent = self.service.agent();
            let found = token.and_then(|token| records::find(shared, agent, token));
            let (inbound, filed) = found.unzip();
            return (None, inbound, filed);
        }
        let found = token
            .and_then(|token| self.service.by_token(token))
            .or_else(|| lines.ids(&self.service).find_map(|id| self.service.by_id(id)));
        if found.is_none() {
            self.service.note_untied();
        }
        let (other, inbound) = found.unzip();
        (other.flatten(), inbound, None)
    }

    /// The head of the answer is there that the application gets; `ends` if there is nothing more.
    pub fn on_response(&mut self, stream: &mut impl Stream, ends: bool) {
        let Some(calling) = &self.calling else { return };
        let mut calling = calling.borrow_mut();
        let mut lines = Lines::read(stream, Block::Response, &self.service);
        calling.answered(&mut lines, stream);
        lines.write(stream);
        if ends {
            calling.over();
        }
    }

    /// The trailers of that answer are there.
    pub fn on_trailers(&mut self, stream: &mut impl Stream) {
        let Some(calling) = &self.calling else { return };
        let mut calling = calling.borrow_mut();
        let mut lines = Lines::read(stream, Block::Trailers, &self.service);
        calling.trailed(&mut lines, stream);
        lines.write(stream);
        calling.over();
    }

    /// A part of the answer's body is there; `ends` if it is the last of the answer.
    pub fn on_body(&mut self, ends: bool) {
        if let Some(calling) = &self.calling
            && ends
        {
            calling.borrow_mut().over();
        }
    }

    /// A hook has panicked: the call goes on as if there were no filter.
    pub fn on_fault(&mut self) {
        self.service.agent().count_fault();
        self.calling = None;
    }

    /// The stream is over, however it ended.
    pub fn on_end(&mut self, stream: &impl Stream) {
        self.announced = None;
        if let Some(calling) = self.calling.take() {
            calling.borrow_mut().end(stream);
        }
    }
}

/// The digest of a body of no bytes.
const EMPTY_BODY: u64 = 0;

/// A number that is equal for requests with the same method, path and query.
fn head_hash(lines: &Lines) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    lines.method.hash(&mut hasher);
    lines.path().hash(&mut hasher);
    hasher.finish()
}
