//! A host that reports to the agent what a script says.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use onus_agent::{
    Agent, AgentConfig, CallError, CallStart, Draw, Edge, FailedAttempt, Inbound, MethodKind, Mode,
    Outbound, Procedure, RetryPolicy, Source, Stop, Switches, Timestamp, Verdict,
};
use prometheus_client::registry::Registry;

use crate::exposition::Exposition;

/// The service `a` with its agent, and a clock that only the test moves.
pub(crate) struct Service {
    pub(crate) agent: Arc<Agent>,
    registry: Registry,
    clock: Arc<AtomicU64>,
}

impl Service {
    pub(crate) fn new(mode: Mode, configure: impl FnOnce(&mut AgentConfig)) -> Self {
        let mut config = AgentConfig::new("a");
        config.mode = mode;
        configure(&mut config);
        let agent = Agent::new(&config, 0x5eed, Timestamp::ZERO).unwrap();
        let clock = Arc::new(AtomicU64::new(0));
        let mut registry = Registry::default();
        let scrape_clock = clock.clone();
        agent.register_metrics(&mut registry, move || read(&scrape_clock));
        Self { agent, registry, clock }
    }

    /// A service that enforces for every request.
    pub(crate) fn enforcing(configure: impl FnOnce(&mut AgentConfig)) -> Self {
        Self::new(Mode::ENFORCE, configure)
    }

    /// An administrator puts up the shield.
    pub(crate) fn shield(&self, time: Duration) {
        let switches = Switches { shield: Some(time), ..Switches::default() };
        self.agent.switch(Source::Admin, &switches, self.now());
    }

    pub(crate) fn now(&self) -> Timestamp {
        read(&self.clock)
    }

    /// Time passes.
    pub(crate) fn pass(&self, time: Duration) {
        self.clock.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// A request for `GET /in`.
    pub(crate) fn request(&self) -> Request<'_> {
        self.request_with(&[])
    }

    pub(crate) fn request_with(&self, lines: &[(&str, &str)]) -> Request<'_> {
        self.request_for("/in", lines)
    }

    pub(crate) fn request_for(&self, route: &str, lines: &[(&str, &str)]) -> Request<'_> {
        self.arrive(route, lines, 0)
    }

    /// A request with these random bits for its lot.
    pub(crate) fn request_drawn(&self, lines: &[(&str, &str)], bits: u64) -> Request<'_> {
        self.arrive("/in", lines, bits)
    }

    fn arrive(&self, route: &str, lines: &[(&str, &str)], bits: u64) -> Request<'_> {
        let mut headers = headers(lines);
        let procedure = self.procedure(route);
        let inbound = self.agent.request_arrived(&mut headers, procedure, bits, || self.now());
        Request { service: self, inbound, headers }
    }

    /// An edge from the procedure that `inbound` serves to `GET` of `route`.
    pub(crate) fn edge(&self, inbound: Option<&Inbound>, callee: &str, route: &str) -> Arc<Edge> {
        let callee = self.agent.symbols().intern(callee);
        self.agent.edge(inbound, callee, self.procedure(route), || self.now())
    }

    /// A call that belongs to no request.
    pub(crate) fn untied_call(&self, callee: &str) -> Call<'_> {
        self.untied_call_to(callee, &Target::GET)
    }

    pub(crate) fn untied_call_to(&self, callee: &str, target: &Target<'_>) -> Call<'_> {
        self.call(None, callee, target)
    }

    /// A `GET` that the host ties to this request, if it can.
    pub(crate) fn call_for(&self, inbound: Option<&Inbound>, callee: &str) -> Call<'_> {
        self.call(inbound, callee, &Target::GET)
    }

    pub(crate) fn metrics(&self) -> Exposition {
        Exposition::of(&self.registry)
    }

    fn procedure(&self, route: &str) -> Procedure {
        Procedure::http(self.agent.symbols(), &Method::GET, Some(route))
    }

    /// A call that the host ties to this request, if it can.
    pub(crate) fn call(
        &self,
        inbound: Option<&Inbound>,
        callee: &str,
        target: &Target<'_>,
    ) -> Call<'_> {
        let edge = self.edge(inbound, callee, target.route);
        let start = CallStart {
            method: target.method,
            head: head(target.route),
            body: target.body.map(digest),
            bits: 0,
            timed_below: false,
        };
        let inbound = inbound.cloned();
        let carries = headers(target.carries);
        let outbound = self.agent.call_started(edge, inbound, start, &carries, || self.now());
        Call { service: self, outbound, carries }
    }
}

/// What a call asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) method: MethodKind,
    pub(crate) route: &'a str,
    pub(crate) body: Option<&'a str>,
    /// The headers that the application puts on each attempt.
    pub(crate) carries: &'a [(&'a str, &'a str)],
}

impl Target<'static> {
    /// `GET /out`, without a body.
    pub(crate) const GET: Self =
        Self { method: MethodKind::Safe, route: "/out", body: Some(""), carries: &[] };
}

/// A request that the service serves.
pub(crate) struct Request<'a> {
    service: &'a Service,
    pub(crate) inbound: Inbound,
    /// What is left of its headers for the application.
    pub(crate) headers: HeaderMap,
}

impl<'a> Request<'a> {
    pub(crate) fn call(&self, callee: &str) -> Call<'a> {
        self.call_to(callee, &Target::GET)
    }

    pub(crate) fn call_to(&self, callee: &str, target: &Target<'_>) -> Call<'a> {
        self.service.call(Some(&self.inbound), callee, target)
    }

    /// The handler answers ok.
    pub(crate) fn ok(self) -> HeaderMap {
        self.answer(false, &[])
    }

    /// The handler answers with an error.
    pub(crate) fn error(self) -> HeaderMap {
        self.answer(true, &[])
    }

    /// The claim of the error that the handler answers with.
    pub(crate) fn claim(self) -> String {
        line(&self.error(), "onus-claim")
    }

    /// The handler answers with these headers; the answer is read to its end.
    pub(crate) fn answer(self, failed: bool, lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = headers(lines);
        self.inbound.answer(failed, false, &mut headers, self.service.now());
        self.inbound.finished(failed, self.service.now());
        headers
    }
}

/// A logical call of the service.
pub(crate) struct Call<'a> {
    service: &'a Service,
    pub(crate) outbound: Outbound,
    carries: HeaderMap,
}

/// What an attempt comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    Ok,
    /// 503 with this claim, none if it is empty.
    Error(&'static str),
    /// The connection breaks.
    Silence,
    /// Nothing: whoever waited has gone.
    Hang,
}

impl Call<'_> {
    /// An attempt leaves; its headers.
    pub(crate) fn send(&mut self) -> HeaderMap {
        let mut headers = self.carries.clone();
        self.outbound.attempt_started(&mut headers, || self.service.now());
        headers
    }

    /// The attempt under way fails with this answer, or without one.
    pub(crate) fn fail(&mut self, error: CallError, lines: Option<&[(&str, &str)]>) -> Verdict {
        self.fail_by(error, lines, true)
    }

    pub(crate) fn fail_by(
        &mut self,
        error: CallError,
        lines: Option<&[(&str, &str)]>,
        replayable: bool,
    ) -> Verdict {
        let headers = lines.map(headers);
        let wall = SystemTime::UNIX_EPOCH;
        let failed =
            FailedAttempt { error, headers: headers.as_ref(), replayable, body_broke: false, wall };
        self.outbound.attempt_failed(&failed, self.service.now(), DRAW)
    }

    /// Sends an attempt for each reply; then whoever waited for the call has gone. The verdict on
    /// the last failed one.
    pub(crate) fn play(self, replies: &[Reply]) -> Option<Verdict> {
        let (verdict, played) = self.play_while_retried(replies);
        assert_eq!(played, replies.len(), "no attempt after {verdict:?}");
        verdict
    }

    /// [`Self::play`], as far as the verdicts let it; and how many replies that were.
    pub(crate) fn play_while_retried(mut self, replies: &[Reply]) -> (Option<Verdict>, usize) {
        let mut verdict = None;
        for (played, reply) in replies.iter().enumerate() {
            if matches!(verdict, Some(Verdict::Stop(_))) {
                return (verdict, played);
            }
            self.send();
            verdict = self.reply(*reply);
            if matches!(reply, Reply::Ok | Reply::Hang) {
                return (verdict, played + 1);
            }
        }
        (verdict, replies.len())
    }

    /// The attempt under way comes to this; the verdict on a failed one.
    pub(crate) fn reply(&mut self, reply: Reply) -> Option<Verdict> {
        match reply {
            Reply::Ok => {
                self.outbound.ok(true, || self.service.now());
                None
            }
            Reply::Error("") => Some(self.fail(CallError::Http(503), Some(&[]))),
            Reply::Error(claim) => {
                Some(self.fail(CallError::Http(503), Some(&[("onus-claim", claim)])))
            }
            Reply::Silence => Some(self.fail(CallError::Reset, None)),
            Reply::Hang => None,
        }
    }
}

/// No jitter to speak of, a gate that passes, and no probe but where one is due.
pub(crate) const DRAW: Draw = Draw::from_bits(0xffff_0000);

/// A policy that nothing but its attempts limits.
pub(crate) fn retries(attempts: u32) -> RetryPolicy {
    RetryPolicy::articles(attempts).no_budget().no_probes()
}

/// The verdict that ends a call for this reason.
pub(crate) fn stopped(stop: Stop) -> Option<Verdict> {
    Some(Verdict::Stop(stop))
}

/// The value of a header; empty without one.
pub(crate) fn line(headers: &HeaderMap, name: &str) -> String {
    let mut lines = headers.get_all(name).iter();
    let value = lines.next().map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(lines.next(), None, "one line of {name}");
    value.unwrap_or_default()
}

pub(crate) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let pairs = lines.iter().map(|(name, value)| {
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
    });
    pairs.collect()
}

/// What the host calls the head of a request for this route.
pub(crate) fn head(route: &str) -> u64 {
    digest(route)
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn read(clock: &AtomicU64) -> Timestamp {
    Timestamp::from_nanos(clock.load(Ordering::Relaxed))
}
