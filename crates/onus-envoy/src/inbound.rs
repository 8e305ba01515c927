//! The filter before the application: a request and its answer.

use std::iter;
use std::sync::Arc;

use onus_agent::classify::{self, Answer};
use onus_agent::{ErrorSet, Inbound, MethodKind, Procedure, Timestamp};

use crate::block::Lines;
use crate::hub::Service;
use crate::records::Record;
use crate::response_flags::{Ending, ending};
use crate::stream::{Block, Stream};

/// One request on its way to the application beside this Envoy.
pub struct InboundFilter {
    service: Arc<Service>,
    serving: Option<Serving>,
}

struct Serving {
    inbound: Inbound,
    /// When the request's head was there.
    arrived: Timestamp,
    /// Where workers share no memory.
    record: Option<Record>,
    kind: MethodKind,
    outcome: Outcome,
    /// Whether the answer has been made to its end.
    ended: bool,
}

/// What the answer says so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Nothing: it is to come, or the status of a gRPC answer is.
    Open,
    Ok,
    Failed,
}

impl InboundFilter {
    /// A filter for one request.
    #[must_use]
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, serving: None }
    }

    /// The request's head is there.
    pub fn on_request(&mut self, stream: &mut impl Stream) {
        let agent = self.service.agent();
        let mut lines = Lines::read(stream, Block::Request, &self.service);
        let kind = classify::method_kind(&lines.method, &lines.headers);
        let procedure = procedure(agent, &lines, kind, stream);
        // Only ids need the time, and where workers share no memory there are none.
        let arrived = if stream.shared().is_some() { Timestamp::ZERO } else { stream.now() };
        let now = || stream.now();
        let inbound = agent.request_arrived(&mut lines.headers, procedure, stream.bits(), now);
        let record = if inbound.arm().is_off() {
            None
        } else {
            self.file(&inbound, &mut lines, stream, arrived)
        };
        lines.write(stream);
        let outcome = Outcome::Open;
        self.serving = Some(Serving { inbound, arrived, record, kind, outcome, ended: false });
    }

    /// Files the request, so that its calls find it, and gives the application its token.
    fn file(
        &self,
        inbound: &Inbound,
        lines: &mut Lines,
        stream: &impl Stream,
        arrived: Timestamp,
    ) -> Option<Record> {
        let agent = self.service.agent();
        let (record, token) = match stream.shared() {
            None => (None, agent.file(inbound, lines.ids(&self.service), arrived)?),
            // A record is found by its token only.
            Some(shared) => {
                let token = agent.file(inbound, iter::empty(), arrived)?;
                let (record, token) = Record::open(shared, inbound, token, self.service.places())?;
                (Some(record), token)
            }
        };
        lines.insert_token(token);
        record
    }

    /// The answer's head is there; `ends` if there is nothing more of it.
    pub fn on_response(&mut self, stream: &mut impl Stream, ends: bool) {
        let Some(serving) = &mut self.serving else { return };
        let mut lines = Lines::read(stream, Block::Response, &self.service);
        let (kind, status) = (serving.kind, lines.status);
        let answer = classify::head(kind, status, &lines.headers, &ErrorSet::FAILURES);
        serving.answer(answer, &mut lines, stream);
        lines.write(stream);
        serving.ended = ends;
    }

    /// The answer's trailers are there.
    pub fn on_trailers(&mut self, stream: &mut impl Stream) {
        let Some(serving) = &mut self.serving else { return };
        let mut lines = Lines::read(stream, Block::Trailers, &self.service);
        if serving.outcome == Outcome::Open {
            let answer = classify::trailers(&lines.headers, &ErrorSet::FAILURES);
            serving.answer(answer, &mut lines, stream);
        } else {
            // The claim was in the head.
            serving.inbound.answer_ok(&mut lines.headers);
        }
        lines.write(stream);
        serving.ended = true;
    }

    /// A part of the answer's body is there; `ends` if it is the last of the answer.
    pub fn on_body(&mut self, ends: bool) {
        if let Some(serving) = &mut self.serving {
            serving.ended |= ends;
        }
    }

    /// A hook has panicked: the request goes on as if there were no filter.
    pub fn on_fault(&mut self, stream: &impl Stream) {
        self.service.agent().count_fault();
        if let Some(serving) = self.serving.take() {
            serving.close(stream);
            serving.inbound.cancelled(stream.now());
        }
    }

    /// The stream is over, however it ended.
    pub fn on_end(&mut self, stream: &impl Stream) {
        let Some(mut serving) = self.serving.take() else { return };
        serving.adopt(stream);
        serving.close(stream);
        // Only ids that linger need the time, and those of a request that ends do not.
        let then = serving.arrived;
        match serving.ending(stream) {
            Ending::Whole => serving.inbound.finished(serving.outcome != Outcome::Ok, then),
            Ending::Broken => serving.inbound.finished(true, then),
            Ending::CallerGone => serving.inbound.cancelled(stream.now()),
        }
    }
}

impl Serving {
    /// Takes over what other workers know of the request's calls, once: an error is judged by what
    /// they have come to when it is made.
    fn adopt(&mut self, stream: &impl Stream) {
        let failed = self.outcome == Outcome::Failed;
        if let (Some(record), Some(shared)) = (&mut self.record, stream.shared()) {
            record.adopt(shared, &self.inbound, failed);
        }
    }

    fn close(&self, stream: &impl Stream) {
        if let (Some(record), Some(shared)) = (&self.record, stream.shared()) {
            record.close(shared);
        }
    }

    /// How the answer ended. Its end need not have been seen; one whose outcome is still to come, or
    /// of whose end Envoy says nothing, is taken as given up. An error is one from its head on: many
    /// callers hang up once they have read it.
    fn ending(&self, stream: &impl Stream) -> Ending {
        if self.ended || self.outcome == Outcome::Failed {
            return Ending::Whole;
        }
        if self.outcome == Outcome::Open {
            return Ending::CallerGone;
        }
        stream.response_flags().map_or(Ending::CallerGone, ending)
    }

    fn answer(&mut self, answer: Answer, lines: &mut Lines, stream: &impl Stream) {
        match answer {
            // The claim of an answer whose outcome is to come goes into its trailers.
            Answer::Pending => self.inbound.answer_ok(&mut lines.headers),
            Answer::Ok => {
                self.outcome = Outcome::Ok;
                self.inbound.answer_ok(&mut lines.headers);
            }
            Answer::Failed(_) => {
                self.outcome = Outcome::Failed;
                self.adopt(stream);
                let grpc = self.kind == MethodKind::Grpc;
                self.inbound.answer(true, grpc, &mut lines.headers, stream.now());
            }
        }
    }
}

/// The procedure that a request asks for: the gRPC method, or the HTTP method on Envoy's route.
pub(crate) fn procedure(
    agent: &onus_agent::Agent,
    lines: &Lines,
    kind: MethodKind,
    stream: &impl Stream,
) -> Procedure {
    let symbols = agent.symbols();
    match kind {
        MethodKind::Grpc => {
            let path = String::from_utf8_lossy(lines.path());
            let (path, _) = path.split_once('?').unwrap_or((&path, ""));
            Procedure::grpc(symbols, path)
        }
        MethodKind::Safe | MethodKind::Unsafe => {
            let route = Some(stream.route()).filter(|route| !route.is_empty());
            Procedure::http(symbols, &lines.method, route.as_deref())
        }
    }
}
