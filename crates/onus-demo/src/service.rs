//! What a service does with a request.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderName, HeaderValue, Response, StatusCode};
use onus::InboundScope;
use tokio::task::{JoinHandle, JoinSet};

use crate::callee::Callee;
use crate::carried::Carried;
use crate::fault::{Arrived, What};
use crate::key::Key;
use crate::protocol::{AnswerBody, Protocol};
use crate::settled::AtWork;
use crate::topology::{CallOrder, Coverage, ServiceConfig};

/// A service, behind its sockets.
#[derive(Debug)]
pub(crate) struct Service {
    config: ServiceConfig,
    protocol: Protocol,
    callees: Vec<Callee>,
    handled: AtomicU64,
    by_key: [AtomicU64; Key::COUNT],
    random: Mutex<fastrand::Rng>,
    at_work: AtWork,
    /// Whether others reach it through a sidecar.
    beside_sidecar: bool,
}

impl Service {
    pub(crate) fn new(
        config: ServiceConfig,
        protocol: Protocol,
        callees: Vec<Callee>,
        seed: u64,
        at_work: AtWork,
        beside_sidecar: bool,
    ) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        let by_key = array::from_fn(|_| AtomicU64::new(0));
        let handled = AtomicU64::new(0);
        Self { config, protocol, callees, handled, by_key, random, at_work, beside_sidecar }
    }

    /// Requests that have arrived at the handler.
    pub(crate) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// How many of them had each key.
    pub(crate) fn handled_by_key(&self) -> [u64; Key::COUNT] {
        array::from_fn(|key| self.by_key[key].load(Ordering::Relaxed))
    }

    /// Handles a request.
    pub(crate) async fn handle(
        self: Arc<Self>,
        carried: Carried,
    ) -> Result<Response<AnswerBody>, NoAnswer> {
        let arrived = self.count(carried.key);
        if self.happens(What::Hangs, arrived) {
            return std::future::pending().await;
        }
        let work = self.clone().work(arrived, carried);
        let status =
            if self.config.detached { finished(onus::spawn(work)).await } else { work.await };
        if self.happens(What::Closes, arrived) {
            return self.lost();
        }
        if self.happens(What::Stalls, arrived) {
            return std::future::pending().await;
        }
        Ok(self.protocol.answer(status, self.config.head_first))
    }

    /// No answer. Where a sidecar would make one instead, what is in front of it is told to lose
    /// the answer.
    fn lost(&self) -> Result<Response<AnswerBody>, NoAnswer> {
        if !self.beside_sidecar {
            return Err(NoAnswer);
        }
        let mut answer = self.protocol.answer(StatusCode::BAD_GATEWAY, false);
        answer.headers_mut().insert(LOST, HeaderValue::from_static("1"));
        Ok(answer)
    }

    fn count(&self, key: Option<Key>) -> Arrived {
        if let Some(key) = key {
            self.by_key[key.index()].fetch_add(1, Ordering::Relaxed);
        }
        Arrived { number: self.handled.fetch_add(1, Ordering::Relaxed) + 1, key }
    }

    async fn work(self: Arc<Self>, request: Arrived, carried: Carried) -> StatusCode {
        let _working = self.at_work.start();
        let error = |status| match self.happens(What::NotImplemented, request) {
            true => StatusCode::NOT_IMPLEMENTED,
            false => status,
        };
        if self.happens(What::FailsAtOnce, request) {
            return error(StatusCode::INTERNAL_SERVER_ERROR);
        }
        let can_answer = match self.config.coverage {
            Coverage::Correlated | Coverage::NonCooperative => self.clone().calls(carried).await,
            Coverage::ContextLost => {
                let calls = self.clone().calls(carried.without_context());
                finished(tokio::spawn(calls)).await
            }
        };
        if !can_answer {
            error(StatusCode::BAD_GATEWAY)
        } else if self.happens(What::Fails, request) {
            error(StatusCode::INTERNAL_SERVER_ERROR)
        } else {
            StatusCode::OK
        }
    }

    /// Makes all calls; whether the service can answer after them.
    async fn calls(self: Arc<Self>, carried: Carried) -> bool {
        match self.config.order {
            CallOrder::Sequential => {
                for callee in &self.callees {
                    if !callee.call(&carried).await {
                        return false;
                    }
                }
                true
            }
            CallOrder::Parallel => {
                let mut calls = JoinSet::new();
                for index in 0..self.callees.len() {
                    let (service, carried) = (self.clone(), carried.clone());
                    let call = async move { service.callees[index].call(&carried).await };
                    calls.spawn(InboundScope::current().wrap(call));
                }
                calls.join_all().await.into_iter().all(|can_answer| can_answer)
            }
        }
    }

    /// Whether this goes wrong with a request.
    fn happens(&self, what: What, request: Arrived) -> bool {
        let draw = || self.random.lock().unwrap_or_else(PoisonError::into_inner).f64();
        let mut faults = self.config.faults.iter().filter(|fault| fault.what == what);
        faults.any(|fault| fault.when.includes(request, draw))
    }
}

/// Closes the connection without an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("answer at all")]
pub(crate) struct NoAnswer;

/// What a task returns. Its panic is the handler's.
async fn finished<T>(task: JoinHandle<T>) -> T {
    match task.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only the runtime cancels it, when the process ends.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Marks an answer that nobody is to see.
pub(crate) const LOST: HeaderName = HeaderName::from_static("demo-lost");
