//! A request from its arrival to the last byte of its answer.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, SizeHint};
use onus_agent::classify::{self, Answer};
use onus_agent::{CallError, ErrorSet, Inbound, MethodKind, Timestamp};

use super::body::InboundBody;
use crate::answer;
use crate::clock::Clock;
use crate::scope::{self, Entered};

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// Reports how a request ends, exactly once: finished, or cancelled if it is dropped before its
/// outcome is certain.
pub(crate) struct Served {
    /// `None` while the handler runs in its scope, and when the request is over.
    inbound: Option<Inbound>,
    clock: Clock,
    kind: MethodKind,
    /// Whether the answer has no body whatever the application gives it: one to HEAD, or one of
    /// a status that has none.
    bodiless: bool,
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
        Self { inbound: Some(inbound), clock, kind, bodiless, outcome: Outcome::Open }
    }

    /// Whether the end of the request is still to come.
    pub(crate) fn is_live(&self) -> bool {
        self.inbound.is_some()
    }

    /// Enters the scope of the request.
    pub(crate) fn enter(&mut self) -> Entered<'_> {
        scope::enter(&mut self.inbound)
    }

    /// The answer's head is made, and with it all of an answer without a body. A gRPC answer may
    /// leave the outcome to its trailers.
    pub(crate) fn head<R: Body>(&mut self, response: &mut Response<R>) {
        let status = response.status();
        self.bodiless |= status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        let headers = response.headers_mut();
        let answer = classify::head(self.kind, status, headers, &ErrorSet::FAILURES);
        self.answer(answer, headers);
        let body = response.body();
        if self.bodiless || body.is_end_stream() || self.has_sent_all(body.size_hint()) {
            self.finished();
        }
    }

    /// The caller's time is over before the application has answered: the layer answers itself,
    /// with 504, for gRPC with status 4 (protocol §5: errors that Onus makes).
    pub(crate) fn out_of_time<R>(&mut self) -> Response<InboundBody<R>> {
        let mut response = answer::out_of_time(self.kind, InboundBody::empty());
        let headers = response.headers_mut();
        headers.insert(PROXY_STATUS, HeaderValue::from_static("onus; error=http_response_timeout"));
        self.answer(Answer::Failed(CallError::Timeout), headers);
        self.finished();
        response
    }

    /// The answer's trailers are made.
    pub(crate) fn trailers(&mut self, block: &mut HeaderMap) {
        if self.is_open() {
            self.answer(classify::trailers(block, &ErrorSet::FAILURES), block);
        } else if let Some(inbound) = &self.inbound {
            // The claim was in the head.
            inbound.answer_ok(block);
        }
    }

    fn answer(&mut self, answer: Answer, headers: &mut HeaderMap) {
        let Some(inbound) = &self.inbound else { return };
        match answer {
            // The claim of an answer whose outcome is to come goes into its trailers.
            Answer::Pending => inbound.answer_ok(headers),
            Answer::Ok => {
                self.outcome = Outcome::Ok;
                inbound.answer_ok(headers);
            }
            Answer::Failed(_) => {
                self.outcome = Outcome::Failed;
                let grpc = self.kind == MethodKind::Grpc;
                inbound.answer(true, grpc, headers, self.clock.now());
                if let Some(around) = scope::current() {
                    around.answered_within(inbound, headers);
                }
            }
        }
    }

    /// Whether nothing of the answer is left where `rest` is the size of what is left of its body.
    ///
    /// Whoever knows the size stops at the last byte and never asks for the end. Where trailers are
    /// to come, the size says nothing about the end.
    pub(crate) fn has_sent_all(&self, rest: SizeHint) -> bool {
        !self.is_open() && rest.exact() == Some(0)
    }

    /// Whether the outcome is still to come, in the trailers.
    fn is_open(&self) -> bool {
        self.outcome == Outcome::Open
    }

    /// The answer has been made to its end.
    pub(crate) fn finished(&mut self) {
        if let Some(inbound) = self.inbound.take() {
            inbound.finished(self.outcome != Outcome::Ok, self.now_if_filed(&inbound));
        }
    }

    /// The answer broke on the way, or there is none.
    pub(crate) fn broken(&mut self) {
        self.outcome = Outcome::Failed;
        self.finished();
    }

    /// The time, where it matters for the end of a request.
    fn now_if_filed(&self, inbound: &Inbound) -> Timestamp {
        if inbound.is_filed() { self.clock.now() } else { Timestamp::ZERO }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        match self.outcome {
            // An error is one from its head on. Many callers hang up once they have read it.
            Outcome::Failed => self.finished(),
            Outcome::Open | Outcome::Ok => {
                if let Some(inbound) = self.inbound.take() {
                    inbound.cancelled(self.now_if_filed(&inbound));
                }
            }
        }
    }
}
