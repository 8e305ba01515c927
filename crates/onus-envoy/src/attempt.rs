//! The filter of one attempt that Envoy makes of a call, where budgets of Onus are to hold.
//!
//! It stands in the router, behind the outbound filter, and sees every attempt before Envoy decides
//! whether to make another: a verdict that refuses one becomes a veto.
//!
//! The head of a gRPC answer says nothing of a status that is in its trailers, and what Envoy has
//! begun to hand on it cannot retry. Where an operator asks for it, such a head is held until the
//! first message is there, or the trailers: then it gets their status, for Envoy's policy to read.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::block::Lines;
use crate::calling::Calling;
use crate::calls;
use crate::hub::Service;
use crate::stream::{Block, Clock, Stream};

/// One attempt.
pub struct AttemptFilter {
    service: Arc<Service>,
    of: Option<Rc<RefCell<Calling>>>,
    /// Whether the request has been sent to its end: one whose caller may wait for the head of the
    /// answer before it goes on must get it.
    sent: bool,
}

/// What becomes of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Head {
    /// It goes on.
    Passes,
    /// An answer's waits for the first message or the trailers; a request's goes no further.
    Held,
}

impl AttemptFilter {
    /// A filter for one attempt.
    #[must_use]
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, of: None, sent: false }
    }

    /// The head of the attempt is about to leave; `ends` if it has no body.
    pub fn on_request(&mut self, stream: &mut impl Stream, ends: bool) -> Head {
        self.sent = ends;
        let calling = stream.left().and_then(calls::find);
        let refuses = calling.as_ref().is_some_and(|calling| calling.borrow().refuses());
        if refuses && stream.refuse("onus: no retry after silence") {
            return Head::Held;
        }
        self.of =
            calling.filter(|calling| calling.borrow_mut().attempt_started(stream, &self.service));
        Head::Passes
    }

    /// The request has been sent to its end.
    pub fn on_request_end(&mut self) {
        self.sent = true;
    }

    /// The head of its answer is there.
    pub fn on_response(&mut self, stream: &mut impl Stream) -> Head {
        let Some(calling) = &self.of else { return Head::Passes };
        let mut calling = calling.borrow_mut();
        let mut lines = Lines::read(stream, Block::Response, &self.service);
        calling.attempt_answered(&mut lines, self.sent, stream);
        lines.write(stream);
        if calling.holds_head() { Head::Held } else { Head::Passes }
    }

    /// A part of the answer's body is there: what was held goes on.
    pub fn on_body(&mut self) {
        if let Some(calling) = &self.of {
            calling.borrow_mut().head_released();
        }
    }

    /// The trailers of the answer are there: what was held goes on.
    pub fn on_trailers(&mut self, stream: &mut impl Stream) {
        let Some(calling) = &self.of else { return };
        let mut calling = calling.borrow_mut();
        if !calling.holds_head() {
            return;
        }
        let mut head = Lines::read(stream, Block::Response, &self.service);
        let trailers = Lines::read(stream, Block::Trailers, &self.service);
        calling.attempt_trailed(&mut head, &trailers, stream);
        head.write(stream);
    }

    /// A hook has panicked: the attempt goes on as if there were no filter.
    pub fn on_fault(&mut self) {
        self.service.agent().count_fault();
        self.of = None;
    }

    /// The attempt is over, however it ended.
    pub fn on_end(&mut self, clock: &impl Clock) {
        if let Some(calling) = self.of.take() {
            calling.borrow_mut().attempt_lost(clock);
        }
    }
}
