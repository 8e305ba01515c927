//! One service between its filters, moment by moment. What Envoy's policy does is what the vector
//! says happens next.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use onus_agent::{Source, Switches, wire};
use onus_conformance::step::{
    Answer, Because, Call, DepositName, Edge, Failed, Handler, Method, Ok as Answered, Step, Then,
};
use onus_conformance::{Fact, Observation, StepVector, Unsupported};
use onus_core::{CallError, Claim, ClaimReason, EdgeClass, MIN_ATTEMPT_TIME, Stop, Timestamp};
use onus_envoy::{
    AttemptFilter, CalleeConfig, FilterConfig, Hub, InboundFilter, OutboundFilter, RetryConfig,
    Service,
};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::cast::Played;

/// Acts the steps out.
pub(super) fn run(vector: &StepVector) -> Result<Vec<Observation>, Unsupported> {
    let mut stage = Stage::new(vector)?;
    vector.steps.iter().map(|step| stage.take(step)).collect()
}

struct Stage<'a> {
    vector: &'a StepVector,
    service: Arc<Service>,
    metrics: Registry,
    switches: Switches,
    now: Timestamp,
    serving: Option<(InboundFilter, Played)>,
    calls: BTreeMap<String, Made>,
    latest: String,
}

/// A call of the application.
struct Made {
    filter: OutboundFilter,
    stream: Played,
    attempt: Option<AttemptFilter>,
    call: Call,
}

impl<'a> Stage<'a> {
    fn new(vector: &'a StepVector) -> Result<Self, Unsupported> {
        let callees = vector.edges.iter().map(|(name, edge)| Ok((name.clone(), callee(edge)?)));
        let mode = vector.service.mode;
        let share = vector.service.share;
        let config = FilterConfig {
            service: Some("service".to_owned()),
            mode: match mode {
                onus_conformance::step::ModeName::Off => "off".to_owned(),
                onus_conformance::step::ModeName::Observe => "observe".to_owned(),
                onus_conformance::step::ModeName::Enforce => format!("enforce {share}%"),
            },
            silent_claims: vector.service.silent_claims,
            callees: callees.collect::<Result<_, Unsupported>>()?,
            ..FilterConfig::default()
        };
        let service = Hub::new().service(config, 1, Timestamp::ZERO);
        let service = service.map_err(|error| Unsupported(format!("refuses: {error}")))?;
        let mut metrics = Registry::default();
        service.agent().register_metrics(&mut metrics, || Timestamp::ZERO);
        Ok(Self {
            vector,
            service,
            metrics,
            switches: Switches::default(),
            now: Timestamp::ZERO,
            serving: None,
            calls: BTreeMap::new(),
            latest: String::new(),
        })
    }

    fn take(&mut self, step: &Step) -> Result<Observation, Unsupported> {
        match step {
            Step::At(time) => self.now = Timestamp::ZERO.saturating_add(time.0),
            Step::Arrive(step) if step.deadline.is_some() => {
                return Err("leaves time limits to Envoy".into());
            }
            Step::Arrive(step) => {
                let mut request = HeaderMap::new();
                if step.mark {
                    wire::write_mark(&mut request, true);
                }
                if let Some(trace) = step.trace {
                    let id: String = trace.0.iter().map(|byte| format!("{byte:02x}")).collect();
                    let parent = format!("00-{id}-00f067aa0ba902b7-01");
                    request.insert("traceparent", parent.parse().unwrap());
                }
                let mut stream = self.stream(request);
                let mut filter = InboundFilter::new(self.service.clone());
                filter.on_request(&mut stream);
                self.calls.clear();
                self.serving = Some((filter, stream));
            }
            Step::Call(call) => self.call(call)?,
            Step::Repeat(step) => {
                let name = self.name(step.call.as_ref());
                let call = self.calls[&name].call.clone();
                self.call(&call)?;
            }
            Step::Sent(step) => return Ok(self.sent(step.call.as_ref())),
            Step::NotSent(step) => return self.not_sent(step.call.as_ref(), step.because),
            Step::Failed(step) => return self.failed(step),
            Step::Ok(step) => self.answered(step),
            Step::Abandoned(step) => {
                let now = self.now;
                let made = self.made(step.call.as_ref());
                (made.stream.now, made.stream.flags) = (now, Some(CALLER_GONE));
                made.filter.on_end(&made.stream);
            }
            Step::Answer(step) => return Ok(self.answer(step)),
            Step::Shield(step) => {
                let lasts = step.lasts.map_or(900, |span| span.0.as_secs());
                self.switches.shield = Some(std::time::Duration::from_secs(lasts));
                self.switch();
            }
            Step::Switch(step) => {
                self.switches.mode = Some(step.mode());
                self.switch();
            }
            Step::Load(_) | Step::Tokens(_) | Step::Gate(_) | Step::Brake(_) => {
                return Err("shows nobody what an edge remembers".into());
            }
            Step::Lot(_) | Step::Judge(_) | Step::Criteria(_) => {
                return Err("decides by whole streams only".into());
            }
        }
        Ok(Observation::nothing())
    }

    fn stream(&self, request: HeaderMap) -> Played {
        let mut stream = Played::request(request);
        stream.now = self.now;
        stream
    }

    fn switch(&self) {
        self.service.agent().switch(Source::Admin, &self.switches, self.now);
    }

    fn name(&self, call: Option<&String>) -> String {
        call.unwrap_or(&self.latest).clone()
    }

    fn made(&mut self, call: Option<&String>) -> &mut Made {
        let name = self.name(call);
        self.calls.get_mut(&name).expect("the vector was checked")
    }

    fn call(&mut self, call: &Call) -> Result<(), Unsupported> {
        if call.within.is_some() {
            return Err("leaves time limits to Envoy".into());
        }
        let edge = &self.vector.edges[&call.edge];
        if call.method == Method::Unsafe && edge.attempts >= 2 && !edge.unsafe_methods {
            return Err("leaves it to Envoy's policy which methods are sent again".into());
        }
        let mut request = HeaderMap::new();
        if let Some((_, serving)) = &self.serving
            && let Some(state) = serving.request.get("tracestate").filter(|_| call.tied)
        {
            request.insert("tracestate", state.clone());
        }
        if call.method == Method::Grpc {
            request.insert("content-type", "application/grpc".parse().unwrap());
        }
        let mut stream = self.stream(request);
        stream.method = if call.method == Method::Safe { "GET" } else { "POST" };
        stream.path = format!("/{}", call.name());
        stream.cluster.clone_from(&call.edge);
        let mut filter = OutboundFilter::new(self.service.clone());
        filter.on_request(&mut stream, true);
        self.latest = call.name().to_owned();
        let made = Made { filter, stream, attempt: None, call: call.clone() };
        self.calls.insert(self.latest.clone(), made);
        Ok(())
    }

    fn sent(&mut self, call: Option<&String>) -> Observation {
        let (service, now) = (self.service.clone(), self.now);
        let made = self.made(call);
        made.stream.now = now;
        if made.stream.left.is_some() {
            let mut attempt = AttemptFilter::new(service);
            let _ = attempt.on_request(&mut made.stream, true);
            made.attempt = Some(attempt);
        }
        let marked = wire::is_marked(&made.stream.request);
        let trusted = self.vector.edges[&self.calls[&self.name(call)].call.edge].trusted;
        // A callee outside of the trust boundary is shown no mark.
        if trusted { [Fact::Mark(marked)].into() } else { Observation::nothing() }
    }

    fn not_sent(
        &mut self,
        call: Option<&String>,
        because: Because,
    ) -> Result<Observation, Unsupported> {
        match because {
            Because::Deadline => return Err("leaves time limits to Envoy".into()),
            Because::Breaker | Because::Limit => {}
        }
        let before = self.stops();
        let made = self.made(call);
        (made.stream.status, made.stream.is_reply) = (503, Some(false));
        made.stream.flags = Some(OVERFLOW);
        made.filter.on_response(&mut made.stream, true);
        Ok(self.stopped_since(&before))
    }

    fn failed(&mut self, step: &Failed) -> Result<Observation, Unsupported> {
        if !step.replayable {
            return Err("leaves it to Envoy what can be sent again".into());
        }
        let before = self.stops();
        let name = self.name(step.call.as_ref());
        let now = self.now;
        let made = self.made(Some(&name));
        let stream = &mut made.stream;
        stream.now = now;
        stream.bits.set(bits(step));
        let error = step.error.as_ref().map_or(CallError::Http(503), |error| error.0);
        let broke = stream.status == BROKEN_LATER;
        (stream.is_reply, stream.flags) = (Some(error.is_reply()), Some(0));
        match error {
            CallError::Http(status) => {
                (stream.status, stream.response) = (status, HeaderMap::new())
            }
            CallError::Grpc(code) => {
                (stream.status, stream.response) = (200, HeaderMap::new());
                stream.response.insert("grpc-status", code.to_string().parse().unwrap());
            }
            CallError::Connect => (stream.status, stream.flags) = (503, Some(1 << 5)),
            CallError::Reset => (stream.status, stream.flags) = (503, Some(1 << 6)),
            CallError::Protocol => (stream.status, stream.flags) = (502, Some(1 << 23)),
            CallError::Timeout => (stream.status, stream.flags) = (504, Some(1 << 2)),
        }
        if !error.is_reply() {
            stream.response = HeaderMap::new();
        }
        reply(step, &name, &mut stream.response);
        if broke {
            made.filter.on_end(&made.stream);
        } else if let Some(mut attempt) = made.attempt.take() {
            if error.is_reply() {
                let _ = attempt.on_response(&mut made.stream);
            }
            attempt.on_end(&made.stream);
        }
        let stopped = self.stopped_since(&before);
        let goes_on = matches!(step.then, Then::Retry | Then::Probe);
        if goes_on && stopped == Observation::nothing() {
            // Whether a retry is a probe is seen by nobody but the counters.
            let probed = step.then == Then::Probe;
            let retried = [Fact::Then(Then::Retry)].into();
            return Ok(if probed { Observation::nothing() } else { retried });
        }
        let made = self.made(Some(&name));
        made.filter.on_response(&mut made.stream, true);
        Ok(self.stopped_since(&before))
    }

    fn answered(&mut self, step: &Answered) {
        let now = self.now;
        let made = self.made(step.call.as_ref());
        let stream = &mut made.stream;
        (stream.now, stream.status, stream.response) = (now, 200, HeaderMap::new());
        (stream.is_reply, stream.flags) = (Some(true), Some(0));
        if made.call.method == Method::Grpc {
            stream.response.insert("grpc-status", "0".parse().unwrap());
        }
        if let Some(mut attempt) = made.attempt.take() {
            let _ = attempt.on_response(stream);
            attempt.on_end(stream);
        }
        made.filter.on_response(stream, false);
        stream.status = BROKEN_LATER;
    }

    fn answer(&mut self, step: &Answer) -> Observation {
        for made in self.calls.values_mut() {
            if made.stream.status == BROKEN_LATER {
                made.filter.on_body(true);
            }
        }
        let Some((mut filter, mut stream)) = self.serving.take() else {
            return Observation::nothing();
        };
        stream.now = self.now;
        match step.handler {
            Handler::Cancelled => {
                filter.on_end(&stream);
                return Observation::nothing();
            }
            Handler::Ok => stream.status = 200,
            Handler::Error => stream.status = 500,
        }
        filter.on_response(&mut stream, true);
        filter.on_end(&stream);
        let read = wire::ClaimHeaders::default().read(&stream.response);
        let mut facts = vec![
            Fact::Claim(match &read {
                wire::ParsedClaim::Valid(text) => Some(text.claim),
                wire::ParsedClaim::Absent | wire::ParsedClaim::Invalid(_) => None,
            }),
            Fact::Vetoes(stream.response.contains_key("x-envoy-ratelimited")),
        ];
        if let wire::ParsedClaim::Valid(text) = read {
            facts.extend(text.reason.map(Fact::Reason));
            let own = text.hops == Some(0);
            let origin = text.origin.filter(|_| text.reason != Some(ClaimReason::Operator) || own);
            facts.extend(origin.map(|origin| {
                Fact::Deciding(if own { "self".to_owned() } else { origin.to_string() })
            }));
        }
        Observation(facts)
    }

    /// How often calls ended for each reason.
    fn stops(&self) -> BTreeMap<&'static str, u64> {
        let mut page = String::new();
        text::encode(&mut page, &self.metrics).unwrap();
        let of = |stop: &Stop| {
            let reason = format!("reason=\"{}\"", stop.as_str());
            let lines = page.lines().filter(|line| {
                line.starts_with("onus_retries_not_made_total{") && line.contains(&reason)
            });
            lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
        };
        Stop::ALL.iter().map(|stop| (stop.as_str(), of(stop))).collect()
    }

    fn stopped_since(&self, before: &BTreeMap<&'static str, u64>) -> Observation {
        let after = self.stops();
        let stop = Stop::ALL.into_iter().find(|stop| after[stop.as_str()] > before[stop.as_str()]);
        Observation(stop.map(|stop| Fact::Then(Then::Stop(stop))).into_iter().collect())
    }
}

/// What the configuration says of a callee.
fn callee(edge: &Edge) -> Result<CalleeConfig, Unsupported> {
    if edge.errors.is_some() {
        return Err("leaves it to Envoy's policy which errors are retried".into());
    }
    if edge.declared.is_some() || edge.brake_acts || edge.min_attempt_time.0 != MIN_ATTEMPT_TIME {
        return Err("has no such setting".into());
    }
    let class = match edge.class {
        EdgeClass::Unknown => None,
        class @ (EdgeClass::FailClose | EdgeClass::FailOpen) => Some(class.as_str().to_owned()),
    };
    let mut retry = RetryConfig {
        attempts: edge.attempts,
        budget_percent: 100,
        budget_min_per_second: 1_000,
        budget_from_successes: false,
        gate: edge.gate,
        probes: edge.probes,
        hold_grpc: false,
    };
    if edge.budget.is_none() && edge.attempts > 3 {
        return Err("has a budget always, and one for so many attempts cannot be set".into());
    }
    if let Some(budget) = &edge.budget {
        if budget.ttl.get() != 10 {
            return Err("has no such setting".into());
        }
        retry.budget_percent = budget.percent;
        retry.budget_min_per_second = budget.min_per_second;
        retry.budget_from_successes = budget.deposit == DepositName::Success;
    }
    let retry = (edge.attempts >= 2).then_some(retry);
    Ok(CalleeConfig { retry, class, untrusted: !edge.trusted, ..CalleeConfig::default() })
}

/// What the callee's answer says, in the name of the call.
fn reply(step: &Failed, name: &str, response: &mut HeaderMap) {
    if let Some(claim) = step.claim {
        let token = match claim {
            Claim::Claimed => "claimed",
            Claim::ClaimedSilent => "claimed;kind=silent",
            Claim::Unclaimed => "unclaimed",
            Claim::UnclaimedShield => "unclaimed;kind=shield",
        };
        let attempt = step.attempt.map(|attempt| format!(";attempt={attempt}")).unwrap_or_default();
        let text = format!("{token}{attempt};origin=\"{name}\"");
        response.insert("onus-claim", text.parse().unwrap());
    }
    let pushback = match step.pushback {
        onus_conformance::step::PushbackSetup::None => return,
        onus_conformance::step::PushbackSetup::Refused => "-1".to_owned(),
        onus_conformance::step::PushbackSetup::After(wait) => wait.0.as_millis().to_string(),
    };
    response.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
}

/// The random numbers that the vector asks for, and no tick of a minute.
fn bits(step: &Failed) -> u64 {
    let sixteen = |permille: u16| (u64::from(permille) << 16).div_ceil(1000).min(0xffff);
    sixteen(step.draws.gate) | sixteen(step.draws.probe) << 16 | 1
}

/// Envoy's flags.
const OVERFLOW: u64 = 1 << 7;
const CALLER_GONE: u64 = 1 << 14;

/// Stands for an answer that is being read, and may break.
const BROKEN_LATER: u16 = 299;
