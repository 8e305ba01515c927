//! One service under the layers, moment by moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;
use onus::{CallError, CallOutcome, Onus, Source, Stop, Switches};
use onus_agent::wire::{ClaimHeaders, ParsedClaim, time_allowed};
use onus_conformance::step::{
    Answer, Arrive, Because, Call, Draws, Ends, Failed, Handler, Load, Method as MethodName,
    ModeName, NotSent, Sent, Step, Then,
};
use onus_conformance::{Fact, Observation, Span, StepVector, Unsupported};
use onus_core::{Claim, EdgeOutcome, RetryCause};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::ServiceExt;

use super::callee::{Attempt, Callee, Lost};
use super::draws::{Asked, prepare};
use super::events::{Decision, Decisions};
use super::request::Running;
use super::setup::{self, Client, Foreseen};
use crate::cast::{Pieces, Series, all_series, counted};

/// Acts the steps out, in virtual time.
pub(super) async fn run(vector: &StepVector) -> Result<Vec<Observation>, Unsupported> {
    let decisions = Decisions::default();
    let _guard = tracing::subscriber::set_default(decisions.clone());
    let mut stage = Stage::new(vector, decisions)?;
    let mut seen = Vec::new();
    for (number, step) in (1..).zip(&vector.steps) {
        let observation = stage.take(step).await;
        seen.push(observation.map_err(|Unsupported(why)| format!("step {number}: {why}"))?);
    }
    Ok(seen)
}

struct Stage<'a> {
    vector: &'a StepVector,
    onus: Onus,
    clients: BTreeMap<String, (Client, Callee)>,
    decisions: Decisions,
    start: Instant,
    switches: Switches,
    request: Option<Running>,
    calls: BTreeMap<String, Made>,
    latest: String,
    foreseen: Foreseen,
    waits_matter: bool,
}

/// A call of the request being served.
struct Made {
    edge: String,
    method: MethodName,
    within: Option<Span>,
    tied: bool,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
    end: Arc<Mutex<Option<End>>>,
    /// Whether an attempt has left.
    sent: bool,
    /// The attempt under way.
    attempt: Option<Attempt>,
    /// Breaks the body of the answer.
    breaks: Option<oneshot::Sender<Lost>>,
}

/// How a call ended for the application.
#[derive(Clone)]
enum End {
    Answered(Option<CallOutcome>),
    Lost,
}

impl<'a> Stage<'a> {
    fn new(vector: &'a StepVector, decisions: Decisions) -> Result<Self, Unsupported> {
        let onus = setup::onus(vector)?;
        let clients = setup::clients(&onus, vector);
        let limited = vector.steps.iter().any(|step| match step {
            Step::Arrive(step) => step.deadline.is_some(),
            Step::Call(step) => step.within.is_some(),
            _ => false,
        });
        if limited && vector.service.mode != ModeName::Enforce {
            return Err("looks at no deadline of a request unless it enforces".into());
        }
        Ok(Self {
            vector,
            onus,
            clients,
            decisions,
            start: Instant::now(),
            switches: Switches::default(),
            request: None,
            calls: BTreeMap::new(),
            latest: String::new(),
            foreseen: Foreseen::in_vector(vector),
            waits_matter: limited,
        })
    }

    async fn take(&mut self, step: &Step) -> Result<Observation, Unsupported> {
        match step {
            Step::At(time) => self.at(time.0).await,
            Step::Arrive(step) => self.arrive(step).await,
            Step::Call(step) => self.call(step).await,
            Step::Sent(step) => self.sent(step).await,
            Step::NotSent(step) => self.not_sent(step).await,
            Step::Failed(step) => self.failed(step).await,
            Step::Ok(step) => {
                let name = step.call.clone().unwrap_or_else(|| self.latest.clone());
                let breaking = self.foreseen.breaking.contains(&name);
                let made = self.made(Some(&name))?;
                let attempt = made.attempt.take().ok_or("saw no attempt")?;
                made.breaks = Some(attempt.succeed()).filter(|_| breaking);
                settle().await;
                Ok(Observation::nothing())
            }
            Step::Abandoned(step) => {
                let made = self.made(step.call.as_ref())?;
                if !made.sent {
                    return Err("lets a first attempt leave when the call starts".into());
                }
                if let Some(task) = made.task.lock().unwrap().take() {
                    task.abort();
                }
                settle().await;
                Ok(Observation::nothing())
            }
            Step::Repeat(step) => {
                let name = step.call.clone().unwrap_or_else(|| self.latest.clone());
                let made = self.made(Some(&name))?;
                let again = Call {
                    edge: made.edge.clone(),
                    name: Some(name),
                    method: made.method,
                    within: made.within,
                    tied: made.tied,
                    arm: None,
                };
                self.start_call(&again).await?;
                Ok(Observation::nothing())
            }
            Step::Answer(step) => self.answer(step).await,
            Step::Shield(step) => {
                self.switches.shield = Some(step.lasts.map_or(SHIELD_DEFAULT, |span| span.0));
                self.onus.switch(Source::Admin, &self.switches);
                Ok(Observation::nothing())
            }
            Step::Switch(step) => {
                self.switches.mode = Some(step.mode());
                self.onus.switch(Source::Admin, &self.switches);
                Ok(Observation::nothing())
            }
            Step::Load(step) => self.load(step).await,
            Step::Tokens(step) => {
                let balance = self.gauge("onus_budget_balance", &step.edge);
                Ok(Observation(
                    balance.map(|whole| Fact::Tokens(whole as u64)).into_iter().collect(),
                ))
            }
            Step::Gate(step) => {
                let share = self.gauge("onus_gate_efficacy_ratio", &step.edge);
                let permille = share.map(|share| (share * 1000.0).round() as u32);
                Ok(Observation(permille.map(Fact::GateShare).into_iter().collect()))
            }
            Step::Brake(step) => {
                let halvings = self.gauge("onus_brake_halvings", &step.edge);
                Ok(Observation(halvings.map(|n| Fact::Halvings(n as u8)).into_iter().collect()))
            }
            Step::Judge(step) => judge(step.error.0).await,
            Step::Lot(_) => Err("shows no lots".into()),
            Step::Criteria(_) => Err("shows no criteria by themselves".into()),
        }
    }

    async fn at(&mut self, time: Duration) -> Result<Observation, Unsupported> {
        let Some(ahead) = time.checked_sub(self.start.elapsed()) else {
            return Err("has a clock that does not step back".into());
        };
        tokio::time::advance(ahead).await;
        settle().await;
        Ok(Observation::nothing())
    }

    async fn arrive(&mut self, step: &Arrive) -> Result<Observation, Unsupported> {
        if let Some(request) = self.request.take() {
            request.cancel();
        }
        self.calls.clear();
        let mut request = Request::get("/").body(Pieces::empty()).unwrap();
        let headers = request.headers_mut();
        if step.mark {
            headers.insert("onus-mark", HeaderValue::from_static("1"));
        }
        if let Some(trace) = step.trace {
            let parent = format!("00-{trace}-00000000000000c3-01");
            headers.insert("traceparent", parent.parse().unwrap());
        }
        if let Some(deadline) = step.deadline {
            allow(&mut request, deadline.0);
        }
        self.request = Some(Running::arrive(&self.onus, request));
        settle().await;
        Ok(Observation::nothing())
    }

    async fn call(&mut self, step: &Call) -> Result<Observation, Unsupported> {
        step.name().clone_into(&mut self.latest);
        self.start_call(step).await?;
        Ok(Observation::nothing())
    }

    async fn start_call(&mut self, step: &Call) -> Result<(), Unsupported> {
        let (name, tied) = (step.name().to_owned(), step.tied);
        let (client, _) = self.clients.get(&step.edge).ok_or("knows no such edge")?;
        let mut request = request(&name, step.method, !self.foreseen.unreplayable.contains(&name));
        if let Some(within) = step.within {
            allow(&mut request, within.0);
        }
        let end = Arc::new(Mutex::new(None));
        let work = work(client.clone(), request, end.clone());
        let task = Arc::new(Mutex::new(None));
        let started = task.clone();
        let running = self.request.as_ref().ok_or("serves no request")?;
        let runs = running.run(move || {
            let task = if tied { onus::spawn(work) } else { tokio::spawn(work) };
            *started.lock().unwrap() = Some(task);
        });
        settle().await;
        if !runs || task.lock().unwrap().is_none() {
            return Err("answers for a handler whose time is over".into());
        }
        let (edge, method, within) = (step.edge.clone(), step.method, step.within);
        let made = Made {
            edge,
            method,
            within,
            tied,
            task,
            end,
            sent: false,
            attempt: None,
            breaks: None,
        };
        self.calls.insert(name, made);
        Ok(())
    }

    fn made(&mut self, call: Option<&String>) -> Result<&mut Made, Unsupported> {
        let name = call.unwrap_or(&self.latest);
        self.calls.get_mut(name).ok_or_else(|| format!("knows no call `{name}`").into())
    }

    async fn sent(&mut self, step: &Sent) -> Result<Observation, Unsupported> {
        let name = step.call.clone().unwrap_or_else(|| self.latest.clone());
        let (edge, end) = {
            let made = self.made(Some(&name))?;
            (made.edge.clone(), made.end.clone())
        };
        let callee = self.clients[&edge].1.clone();
        let Some(attempt) = next_attempt(&callee, &name, &end).await else {
            return Ok(stopped(&end));
        };
        let marked = attempt.headers.contains_key("onus-mark");
        // A stranger is not told of the mark.
        let mark = self.vector.edges[&edge].trusted.then_some(Fact::Mark(marked));
        // Less than a millisecond is written as one.
        let allows = time_allowed(&attempt.headers).filter(|time| time.as_millis() > 1);
        let made = self.made(Some(&name))?;
        (made.sent, made.attempt) = (true, Some(attempt));
        Ok(Observation(mark.into_iter().chain(allows.map(Fact::Allows)).collect()))
    }

    async fn not_sent(&mut self, step: &NotSent) -> Result<Observation, Unsupported> {
        match step.because {
            Because::Breaker | Because::Limit => Err("has no breaker and no limit".into()),
            Because::Deadline => Ok(stopped(&self.made(step.call.as_ref())?.end)),
        }
    }

    async fn failed(&mut self, step: &Failed) -> Result<Observation, Unsupported> {
        let name = step.call.clone().unwrap_or_else(|| self.latest.clone());
        let edge = self.made(Some(&name))?.edge.clone();
        let setup = &self.vector.edges[&edge];
        let asked = Asked::new(step.draws, setup.gate, setup.probes, self.waits_matter);
        self.decisions.take();
        let made = self.made(Some(&name))?;
        let error = step.error.map_or(CallError::Http(503), |error| error.0);
        prepare(asked);
        match (made.breaks.take(), made.attempt.take()) {
            (Some(breaks), _) => drop(breaks.send(Lost(error))),
            (None, Some(attempt)) => attempt.fail(reply(&name, step, error)),
            (None, None) => return Err("saw no attempt".into()),
        }
        settle().await;
        let end = made.end.lock().unwrap().clone();
        let decisions = self.decisions.take();
        let Some(decision) = decisions.iter().rfind(|decision| decision.callee == edge) else {
            return Err("told no decision".into());
        };
        Ok(facts(decision, end.as_ref()))
    }

    async fn answer(&mut self, step: &Answer) -> Result<Observation, Unsupported> {
        let before = all_series(&self.onus);
        let request = self.request.take().ok_or("serves no request")?;
        let status = match step.handler {
            Handler::Error => 500,
            Handler::Ok => 200,
            Handler::Cancelled => {
                request.cancel();
                settle().await;
                return Ok([Fact::Claim(None), Fact::Vetoes(false)].into());
            }
        };
        let (head, body) = request.answer(status).await.into_parts();
        let _ = body.collect().await;
        let after = all_series(&self.onus);
        let mut facts = lessons(&before, &after);
        facts.push(Fact::Vetoes(head.headers.contains_key("x-envoy-ratelimited")));
        let said = match ClaimHeaders::default().read(&head.headers) {
            ParsedClaim::Valid(text) => Some(text),
            ParsedClaim::Absent => None,
            ParsedClaim::Invalid(why) => return Err(format!("sent {why:?}").into()),
        };
        facts.push(Fact::Claim(said.as_ref().map(|text| text.claim)));
        if let Some(text) = said {
            facts.extend(text.reason.map(Fact::Reason));
            let deciding = text.origin.and_then(|origin| self.deciding(&origin));
            facts.extend(deciding.map(Fact::Deciding));
        }
        Ok(Observation(facts))
    }

    /// The call that an origin stands for: replies name their call as their origin, and where
    /// there was none it is the callee.
    fn deciding(&self, origin: &str) -> Option<String> {
        if origin == "service" {
            return Some("self".to_owned());
        }
        if self.calls.contains_key(origin) {
            return Some(origin.to_owned());
        }
        let mut calls = self.calls.iter().filter(|(_, made)| made.edge == origin);
        let (name, _) = calls.next()?;
        calls.next().is_none().then(|| name.clone())
    }

    async fn load(&mut self, load: &Load) -> Result<Observation, Unsupported> {
        let mut as_asked = 0;
        for _ in 0..load.calls {
            as_asked += u32::from(self.load_one(load).await?);
        }
        Ok([Fact::Loaded(as_asked)].into())
    }

    /// One call in a request of its own; whether it ended as asked.
    async fn load_one(&mut self, load: &Load) -> Result<bool, Unsupported> {
        let (client, callee) = self.clients.get(&load.edge).ok_or("knows no such edge")?.clone();
        let setup = &self.vector.edges[&load.edge];
        let running = Running::arrive(&self.onus, Request::get("/").body(Pieces::empty()).unwrap());
        let end = Arc::new(Mutex::new(None));
        let work = work(client, request("load", MethodName::Safe, true), end.clone());
        running.run(move || drop(onus::spawn(work)));
        let (cause, claim) = match load.ends {
            Ends::Ok => (None, None),
            Ends::RetriedOk | Ends::RetriedFailed => (Some("missing"), None),
            Ends::ProbedOk | Ends::ProbedFailed => (Some("probe"), Some("unclaimed")),
        };
        let fails = || {
            let mut reply = Response::builder().status(503);
            if let Some(claim) = claim {
                reply = reply.header("onus-claim", claim);
            }
            Ok(reply.body(()).unwrap())
        };
        let mut as_asked = true;
        self.decisions.take();
        let mut attempt = next_attempt(&callee, "load", &end).await.ok_or("saw no attempt")?;
        if let Some(cause) = cause {
            prepare(Asked::new(LETS_PASS, setup.gate, setup.probes, false));
            attempt.fail(fails());
            settle().await;
            let decided = self.decisions.take();
            as_asked = decided.last().is_some_and(|last| last.retried && last.reason == cause);
            let Some(next) = next_attempt(&callee, "load", &end).await else { return Ok(false) };
            attempt = next;
        }
        match load.ends {
            Ends::Ok | Ends::RetriedOk | Ends::ProbedOk => drop(attempt.succeed()),
            Ends::RetriedFailed | Ends::ProbedFailed => {
                attempt.fail(fails());
                settle().await;
                as_asked &= self.decisions.take().last().is_some_and(|last| !last.retried);
            }
        }
        settle().await;
        drop(running.answer(200).await);
        Ok(as_asked)
    }

    fn gauge(&self, family: &str, edge: &str) -> Option<f64> {
        let is = |series: &Series| series.family == family && series.labels["callee"] == edge;
        all_series(&self.onus).into_iter().find(is).map(|series| series.value)
    }
}

/// Lets everybody do what there is to do, without a wait.
async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// The attempt of a call that comes next, after the wait before it; `None` if the call ends.
async fn next_attempt(callee: &Callee, call: &str, end: &Mutex<Option<End>>) -> Option<Attempt> {
    for _ in 0..MILLIS_MAX {
        settle().await;
        if let Some(attempt) = callee.attempt_of(call) {
            return Some(attempt);
        }
        if end.lock().unwrap().is_some() {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    None
}

/// Makes a call, and holds its answer.
async fn work(client: Client, request: Request<Pieces>, end: Arc<Mutex<Option<End>>>) {
    match client.oneshot(request).await {
        Ok(response) => {
            let outcome = response.extensions().get().cloned();
            *end.lock().unwrap() = Some(End::Answered(outcome));
            let _ = response.into_body().collect().await;
        }
        Err(Lost(_)) => *end.lock().unwrap() = Some(End::Lost),
    }
}

/// Says how much time a request allows.
fn allow(request: &mut Request<Pieces>, time: Duration) {
    let text = format!("{}m", time.as_millis());
    request.headers_mut().insert("grpc-timeout", text.parse().unwrap());
}

fn request(name: &str, method: MethodName, replayable: bool) -> Request<Pieces> {
    let mut request = Request::new(setup::body(replayable));
    *request.uri_mut() = format!("/{name}").parse().unwrap();
    match method {
        MethodName::Safe => {}
        MethodName::Unsafe => *request.method_mut() = Method::POST,
        MethodName::Grpc => {
            *request.method_mut() = Method::POST;
            let grpc = HeaderValue::from_static("application/grpc");
            request.headers_mut().insert(header::CONTENT_TYPE, grpc);
        }
    }
    request
}

/// What the callee answers; its claim names the call as its origin.
fn reply(name: &str, step: &Failed, error: CallError) -> Result<Response<()>, Lost> {
    let mut reply = match error {
        CallError::Http(status) => Response::builder().status(status),
        CallError::Grpc(code) => Response::builder()
            .header(header::CONTENT_TYPE, "application/grpc")
            .header("grpc-status", code.to_string()),
        CallError::Connect | CallError::Reset | CallError::Protocol | CallError::Timeout => {
            return Err(Lost(error));
        }
    };
    if let Some(claim) = step.claim {
        let token = match claim {
            Claim::Claimed => "claimed",
            Claim::ClaimedSilent => "claimed;kind=silent",
            Claim::Unclaimed => "unclaimed",
            Claim::UnclaimedShield => "unclaimed;kind=shield",
        };
        let attempt = step.attempt.map(|attempt| format!(";attempt={attempt}"));
        let attempt = attempt.unwrap_or_default();
        reply = reply.header("onus-claim", format!("{token}{attempt};origin=\"{name}\""));
    }
    if let Some(pushback) = setup::pushback(step.pushback) {
        reply = reply.header("grpc-retry-pushback-ms", pushback);
    }
    Ok(reply.body(()).unwrap())
}

/// What a decision shows, and the application's end of the call.
fn facts(decision: &Decision, end: Option<&End>) -> Observation {
    let reason = decision.reason.as_str();
    if !decision.retried {
        let stop = Stop::ALL.into_iter().find(|stop| stop.as_str() == reason);
        let then = stop.map(|stop| Fact::Then(Then::Stop(stop)));
        let reads = match end {
            Some(End::Answered(Some(outcome))) => Some(Fact::Reads(outcome.read)),
            Some(End::Answered(None) | End::Lost) | None => None,
        };
        return Observation(then.into_iter().chain(reads).collect());
    }
    let cause = RetryCause::ALL.into_iter().find(|cause| cause.as_str() == reason);
    match cause {
        Some(RetryCause::Probe) => [Fact::Then(Then::Probe)].into(),
        Some(RetryCause::Claim(read)) => [Fact::Then(Then::Retry), Fact::Reads(read)].into(),
        None => Observation::nothing(),
    }
}

/// How a call ended that was not sent.
fn stopped(end: &Mutex<Option<End>>) -> Observation {
    match &*end.lock().unwrap() {
        Some(End::Answered(Some(outcome))) => [Fact::Then(Then::Stop(outcome.stop))].into(),
        Some(End::Answered(None) | End::Lost) | None => Observation::nothing(),
    }
}

/// What a request has taught, and whether it was clean.
fn lessons(before: &[Series], after: &[Series]) -> Vec<Fact> {
    let grown = |series: &&Series| {
        let same = |old: &&Series| old.family == series.family && old.labels == series.labels;
        series.value > before.iter().find(same).map_or(0.0, |old| old.value)
    };
    let of = |family: &'static str| {
        after.iter().filter(move |series| series.family == family).filter(grown)
    };
    let taught = of("onus_edge_requests_total").map(|series| {
        let (outcome, isolated) = (&series.labels["callee_outcome"], &series.labels["isolated"]);
        let outcome = match (outcome.as_str(), isolated.as_str()) {
            ("ok", _) => EdgeOutcome::Ok,
            (_, "true") => EdgeOutcome::FailedAlone,
            _ => EdgeOutcome::FailedJointly,
        };
        (series.labels["callee"].clone(), outcome)
    });
    let taught = Fact::Teaches(taught.collect());
    vec![taught, Fact::Clean(of("onus_clean_requests_total").next().is_some())]
}

/// Whether an answer, or the lack of one, is a failure of the callee.
async fn judge(error: CallError) -> Result<Observation, Unsupported> {
    let onus = Onus::builder("service").build().unwrap();
    let (layer, callee) = (onus.outbound("callee").classify_errors(setup::Kind), Callee::default());
    let client = tower::Layer::layer(&layer, callee.clone());
    let end = Arc::new(Mutex::new(None));
    tokio::spawn(work(client, request("call", MethodName::Safe, true), end.clone()));
    let attempt = next_attempt(&callee, "call", &end).await.ok_or("saw no attempt")?;
    let plain = Failed {
        call: None,
        error: None,
        claim: None,
        attempt: None,
        pushback: Default::default(),
        replayable: true,
        draws: Draws::default(),
        then: Then::Retry,
        reads: None,
        shadow: None,
        wait: None,
    };
    attempt.fail(reply("call", &plain, error));
    settle().await;
    let failures = counted(&onus, "onus_calls_total", &[("outcome", "error")]);
    Ok([Fact::Failure(failures == 1)].into())
}

/// A draw that passes every gate and takes every probe.
const LETS_PASS: Draws = Draws { gate: 0, probe: 0, jitter: 0 };

const SHIELD_DEFAULT: Duration = Duration::from_secs(15 * 60);

/// The longest wait for an attempt.
const MILLIS_MAX: u32 = 20_000;
