//! One call of the application: what it sends, what it gets, and how it ends.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt;
use onus::{CallError, CallOutcome};
use onus_conformance::step::{Failed, Method as MethodName};
use onus_core::Claim;
use tower::ServiceExt;

use super::callee::{Attempt, Callee, Lost};
use super::setup::{self, Client};
use super::wire::{Blocks, GRPC, METHOD, Wire};
use crate::cast::Pieces;

/// How a call ended for the application.
#[derive(Clone)]
pub(super) enum End {
    Answered(Option<CallOutcome>),
    Lost,
}

/// Makes a call, and holds its answer.
pub(super) async fn work(client: Client, request: Request<Pieces>, end: Arc<Mutex<Option<End>>>) {
    match client.oneshot(request).await {
        Ok(response) => {
            let outcome = response.extensions().get().cloned();
            *end.lock().unwrap() = Some(End::Answered(outcome));
            let _ = response.into_body().collect().await;
        }
        Err(Lost(_)) => *end.lock().unwrap() = Some(End::Lost),
    }
}

pub(super) fn request(name: &str, method: MethodName, replayable: bool) -> Request<Pieces> {
    let mut request = Request::new(setup::body(replayable));
    *request.uri_mut() = format!("{METHOD}?{name}").parse().unwrap();
    match method {
        MethodName::Safe => {}
        MethodName::Unsafe => *request.method_mut() = Method::POST,
        MethodName::Grpc => {
            *request.method_mut() = Method::POST;
            request.headers_mut().insert(header::CONTENT_TYPE, GRPC);
        }
    }
    request
}

/// Says how much time a request allows.
pub(super) fn allow(request: &mut Request<Pieces>, time: Duration) {
    let text = format!("{}m", time.as_millis());
    request.headers_mut().insert("grpc-timeout", text.parse().unwrap());
}

/// What the callee answers; its claim names the call as its origin.
pub(super) fn reply(
    name: &str,
    step: &Failed,
    error: CallError,
    wire: Wire,
) -> Result<Blocks, Lost> {
    if !error.is_reply() {
        return Err(Lost(error.into()));
    }
    let mut lines = HeaderMap::new();
    if let Some(claim) = step.claim {
        let token = match claim {
            Claim::Claimed => "claimed",
            Claim::ClaimedSilent => "claimed;kind=silent",
            Claim::Unclaimed => "unclaimed",
            Claim::UnclaimedShield => "unclaimed;kind=shield",
        };
        let attempt = step.attempt.map(|attempt| format!(";attempt={attempt}"));
        let attempt = attempt.unwrap_or_default();
        let claim = format!("{token}{attempt};origin=\"{name}\"");
        lines.insert("onus-claim", claim.parse().unwrap());
    }
    if let Some(pushback) = setup::pushback(step.pushback) {
        lines.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    }
    Ok(wire.blocks(Some(error), lines))
}

/// Lets everybody do what there is to do, without a wait.
pub(super) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// The attempt of a call that comes next, after the wait before it; `None` if the call ends.
pub(super) async fn next_attempt(
    callee: &Callee,
    call: &str,
    end: &Mutex<Option<End>>,
) -> Option<Attempt> {
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

/// The longest wait for an attempt.
const MILLIS_MAX: u32 = 20_000;
