//! A request from its arrival to the last byte of its answer.

use http::{HeaderMap, StatusCode};
use onus_agent::classify::{self, Answer};
use onus_agent::{ErrorSet, Inbound, MethodKind};

use crate::clock::Clock;

/// Reports how a request ends, exactly once: finished, or cancelled if it is dropped before.
pub(crate) struct Served {
    pub(crate) inbound: Inbound,
    clock: Clock,
    kind: MethodKind,
    failures: ErrorSet,
    /// Whether the answer has no body whatever its headers say (HEAD).
    pub(crate) bodiless: bool,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Not known: no answer yet, or the trailers of a gRPC answer are to come.
    Open,
    Ok,
    Failed,
}

impl Served {
    pub(crate) fn new(inbound: Inbound, clock: Clock, kind: MethodKind, bodiless: bool) -> Self {
        let failures = ErrorSet::failures();
        Self { inbound, clock, kind, failures, bodiless, outcome: Outcome::Open }
    }

    /// The answer's head is made. A gRPC answer may leave the outcome to its trailers.
    pub(crate) fn head(&mut self, status: StatusCode, headers: &mut HeaderMap) {
        let answer = classify::head(self.kind, status, headers, &self.failures);
        self.answer(answer, headers);
    }

    /// The answer's trailers are made.
    pub(crate) fn trailers(&mut self, block: &mut HeaderMap) {
        if self.is_open() {
            self.answer(classify::trailers(block, &self.failures), block);
        }
    }

    fn answer(&mut self, answer: Answer, headers: &mut HeaderMap) {
        let failed = match answer {
            Answer::Ok => false,
            Answer::Failed(_) => true,
            Answer::Pending => return,
        };
        self.outcome = if failed { Outcome::Failed } else { Outcome::Ok };
        let grpc = self.kind == MethodKind::Grpc;
        self.inbound.answer(failed, grpc, headers, self.clock.now());
    }

    /// Whether the outcome is still to come, in the trailers.
    pub(crate) fn is_open(&self) -> bool {
        self.outcome == Outcome::Open
    }

    /// The answer has been made to its end.
    pub(crate) fn finished(&self) {
        self.inbound.finished(self.outcome != Outcome::Ok, self.clock.now());
    }

    /// The answer broke on the way, or there is none.
    pub(crate) fn broken(&mut self) {
        self.outcome = Outcome::Failed;
        self.finished();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Without effect after `finished`.
        self.inbound.cancelled(self.clock.now());
    }
}
