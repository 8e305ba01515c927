//! Calls that do not belong to the request being served.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderValue};
use onus::{CallError, Onus};
use onus_conformance::step::{Draws, Edge, Ends, Failed, Load, Method, Then};
use onus_conformance::{Fact, Observation, Unsupported};

use super::callee::Callee;
use super::calls::{next_attempt, reply, request, settle, work};
use super::draws::{Asked, prepare};
use super::events::take_decisions;
use super::request::Running;
use super::setup::{self, Client};
use super::wire::Wire;
use crate::cast::counted;

/// Makes the calls, and tells how many ended as asked.
pub(super) async fn run(
    onus: &Onus,
    client: &(Client, Callee),
    setup: &Edge,
    load: &Load,
    wire: Wire,
) -> Result<Observation, Unsupported> {
    let mut as_asked = 0;
    for _ in 0..load.calls {
        as_asked += u32::from(one(onus, client.clone(), setup, load.ends, wire).await?);
    }
    Ok([Fact::Loaded(as_asked)].into())
}

/// One call in a request of its own; whether it ended as asked.
async fn one(
    onus: &Onus,
    (client, callee): (Client, Callee),
    setup: &Edge,
    ends: Ends,
    wire: Wire,
) -> Result<bool, Unsupported> {
    let running = Running::arrive(onus, wire.request());
    let end = Arc::new(Mutex::new(None));
    let work = work(client, request("load", wire.method(Method::Safe), true), end.clone());
    running.run(move || drop(onus::spawn(work)));
    let (cause, claim) = match ends {
        Ends::Ok => (None, None),
        Ends::RetriedOk | Ends::RetriedFailed => (Some("missing"), None),
        Ends::ProbedOk | Ends::ProbedFailed => (Some("probe"), Some("unclaimed")),
    };
    let fails = || {
        let mut lines = HeaderMap::new();
        if let Some(claim) = claim {
            lines.insert("onus-claim", HeaderValue::from_static(claim));
        }
        Ok(wire.blocks(Some(wire.error()), lines))
    };
    let mut as_asked = true;
    take_decisions();
    let mut attempt = next_attempt(&callee, "load", &end).await.ok_or("saw no attempt")?;
    if let Some(cause) = cause {
        prepare(Asked::new(LETS_PASS, setup.gate, setup.probes, false));
        attempt.fail(fails());
        settle().await;
        let decided = take_decisions();
        as_asked = decided.last().is_some_and(|last| last.retried && last.reason == cause);
        let Some(next) = next_attempt(&callee, "load", &end).await else { return Ok(false) };
        attempt = next;
    }
    match ends {
        Ends::Ok | Ends::RetriedOk | Ends::ProbedOk => drop(attempt.succeed(wire)),
        Ends::RetriedFailed | Ends::ProbedFailed => {
            attempt.fail(fails());
            settle().await;
            as_asked &= take_decisions().last().is_some_and(|last| !last.retried);
        }
    }
    settle().await;
    drop(running.answer(wire.answer(true)).await);
    Ok(as_asked)
}

/// Whether an answer, or the lack of one, is a failure of the callee.
pub(super) async fn judge(error: CallError, wire: Wire) -> Result<Observation, Unsupported> {
    let onus = Onus::builder("service").build().unwrap();
    let (layer, callee) = (onus.outbound("callee").classify_errors(setup::Kind), Callee::default());
    let client = tower::Layer::layer(&layer, callee.clone());
    let end = Arc::new(Mutex::new(None));
    let request = request("call", wire.method(Method::Safe), true);
    tokio::spawn(work(client, request, end.clone()));
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
    attempt.fail(reply("call", &plain, error, wire));
    settle().await;
    let failures = counted(&onus, "onus_calls_total", &[("outcome", "error")]);
    Ok([Fact::Failure(failures == 1)].into())
}

/// A draw that passes every gate and takes every probe.
const LETS_PASS: Draws = Draws { gate: 0, probe: 0, jitter: 0 };
