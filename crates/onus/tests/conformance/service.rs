//! One service under the layers, moment by moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use http_body_util::BodyExt;
use onus::{AttemptError, Onus, Source, Switches};
use onus_agent::wire::{ClaimHeaders, ParsedClaim, time_allowed};
use onus_conformance::step::{
    Answer, Arrive, Because, Call, Failed, Handler, Method, ModeName, NotSent, Sent, Step,
};
use onus_conformance::{Fact, Observation, Span, StepVector, Unsupported};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::callee::{Attempt, Callee, Lost};
use super::calls::{End, allow, next_attempt, reply, request, settle, work};
use super::draws::{Asked, prepare};
use super::events::take_decisions;
use super::load;
use super::request::Running;
use super::seen::{facts, lessons, stopped};
use super::setup::{self, Client, Foreseen};
use super::wire::Wire;
use crate::cast::{Series, all_series};

/// Acts the steps out, in virtual time.
pub(super) async fn run(vector: &StepVector, wire: Wire) -> Result<Vec<Observation>, Unsupported> {
    let mut stage = Stage::new(vector, wire)?;
    let mut seen = Vec::new();
    for (number, step) in (1..).zip(&vector.steps) {
        let observation = stage.take(step).await;
        seen.push(observation.map_err(|Unsupported(why)| format!("step {number}: {why}"))?);
    }
    Ok(seen)
}

struct Stage<'a> {
    vector: &'a StepVector,
    wire: Wire,
    onus: Onus,
    clients: BTreeMap<String, (Client, Callee)>,
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
    method: Method,
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

impl<'a> Stage<'a> {
    fn new(vector: &'a StepVector, wire: Wire) -> Result<Self, Unsupported> {
        let onus = setup::onus(vector)?;
        let clients = setup::clients(&onus, vector);
        let limited = |step: &Step| {
            matches!(step, Step::Arrive(step) if step.deadline.is_some())
                || matches!(step, Step::Call(step) if step.within.is_some())
        };
        let limited = vector.steps.iter().any(limited);
        if limited && vector.service.mode != ModeName::Enforce {
            return Err("looks at no deadline of a request unless it enforces".into());
        }
        Ok(Self {
            vector,
            wire,
            onus,
            clients,
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
                let wire = self.wire;
                let made = self.made(Some(&name))?;
                let attempt = made.attempt.take().ok_or("saw no attempt")?;
                made.breaks = Some(attempt.succeed(wire)).filter(|_| breaking);
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
            Step::Load(step) => {
                let client = self.clients.get(&step.edge).ok_or("knows no such edge")?;
                let setup = &self.vector.edges[&step.edge];
                load::run(&self.onus, client, setup, step, self.wire).await
            }
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
            Step::Judge(step) => load::judge(step.error.0, self.wire).await,
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
        let mut request = self.wire.request();
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
        let method = self.wire.method(step.method);
        let mut request = request(&name, method, !self.foreseen.unreplayable.contains(&name));
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
            Because::Breaker | Because::Limit => {
                let name = step.call.clone().unwrap_or_else(|| self.latest.clone());
                let edge = self.made(Some(&name))?.edge.clone();
                // What stands before the callee refuses what would have reached it.
                let attempt = self.clients[&edge].1.attempt_of(&name).ok_or("saw no attempt")?;
                attempt.fail(Err(Lost(AttemptError::Refused)));
                settle().await;
                Ok(Observation::nothing())
            }
            Because::Deadline => Ok(stopped(&self.made(step.call.as_ref())?.end)),
        }
    }

    async fn failed(&mut self, step: &Failed) -> Result<Observation, Unsupported> {
        let name = step.call.clone().unwrap_or_else(|| self.latest.clone());
        let edge = self.made(Some(&name))?.edge.clone();
        let setup = &self.vector.edges[&edge];
        let asked = Asked::new(step.draws, setup.gate, setup.probes, self.waits_matter);
        take_decisions();
        let wire = self.wire;
        let made = self.made(Some(&name))?;
        let error = step.error.map_or_else(|| wire.error(), |error| error.0);
        prepare(asked);
        match (made.breaks.take(), made.attempt.take()) {
            (Some(breaks), _) => drop(breaks.send(Lost(error.into()))),
            (None, Some(attempt)) => attempt.fail(reply(&name, step, error, wire)),
            (None, None) => return Err("saw no attempt".into()),
        }
        settle().await;
        let end = made.end.lock().unwrap().clone();
        let decisions = take_decisions();
        let Some(decision) = decisions.iter().rfind(|decision| decision.callee == edge) else {
            return Err("told no decision".into());
        };
        Ok(facts(decision, end.as_ref()))
    }

    async fn answer(&mut self, step: &Answer) -> Result<Observation, Unsupported> {
        let before = all_series(&self.onus);
        let request = self.request.take().ok_or("serves no request")?;
        let is_ok = match step.handler {
            Handler::Error => false,
            Handler::Ok => true,
            Handler::Cancelled => {
                request.cancel();
                settle().await;
                return Ok([Fact::Claim(None), Fact::Vetoes(false)].into());
            }
        };
        let (head, body) = request.answer(self.wire.answer(is_ok)).await.into_parts();
        let trailers = body.collect().await.ok().and_then(|body| body.trailers().cloned());
        let block = trailers.unwrap_or(head.headers);
        let after = all_series(&self.onus);
        let mut facts = lessons(&before, &after);
        let vetoed = block.contains_key("x-envoy-ratelimited");
        if vetoed != block.contains_key("grpc-retry-pushback-ms") && self.wire != Wire::Http {
            return Err("sent one veto of two".into());
        }
        facts.push(Fact::Vetoes(vetoed));
        let said = match ClaimHeaders::default().read(&block) {
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

    fn gauge(&self, family: &str, edge: &str) -> Option<f64> {
        let is = |series: &Series| series.family == family && series.labels["callee"] == edge;
        all_series(&self.onus).into_iter().find(is).map(|series| series.value)
    }
}

const SHIELD_DEFAULT: Duration = Duration::from_secs(15 * 60);
