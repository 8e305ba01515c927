//! The filter of one attempt that Envoy makes of a call, where budgets of Onus are to hold.
//!
//! It stands in the router, behind the outbound filter, and sees every attempt before Envoy decides
//! whether to make another: a verdict that refuses one becomes a veto.

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
    of: Option<(u64, Rc<RefCell<Calling>>)>,
}

impl AttemptFilter {
    /// A filter for one attempt.
    #[must_use]
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, of: None }
    }

    /// The head of the attempt is about to leave.
    pub fn on_request(&mut self, stream: &mut impl Stream) {
        let mut lines = Lines::read(stream, Block::Request, self.service.more());
        self.of = calls::find(&mut lines.headers);
        if let Some((_, calling)) = &self.of {
            calling.borrow_mut().attempt_started(&mut lines, stream);
        }
        lines.write(stream);
    }

    /// The head of its answer is there.
    pub fn on_response(&mut self, stream: &mut impl Stream) {
        let Some((id, calling)) = &self.of else { return };
        let mut lines = Lines::read(stream, Block::Response, self.service.more());
        let goes_on = calling.borrow_mut().attempt_answered(&mut lines, stream);
        lines.write(stream);
        if goes_on {
            let mut next = Lines::read(stream, Block::Request, self.service.more());
            calls::write(*id, &mut next.headers);
            next.write(stream);
        }
    }

    /// A hook has panicked: the attempt goes on as if there were no filter.
    pub fn on_fault(&mut self) {
        self.service.agent().count_fault();
        self.of = None;
    }

    /// The attempt is over, however it ended.
    pub fn on_end(&mut self, clock: &impl Clock) {
        if let Some((_, calling)) = self.of.take() {
            calling.borrow_mut().attempt_lost(clock);
        }
    }
}
