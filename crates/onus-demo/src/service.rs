//! What a service does with a request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use onus::InboundScope;
use tokio::task::{JoinHandle, JoinSet};

use crate::callee::Callee;
use crate::settled::AtWork;
use crate::topology::{CallOrder, Coverage, Fault, ServiceConfig};

/// A service, behind its sockets.
#[derive(Debug)]
pub(crate) struct Service {
    config: ServiceConfig,
    callees: Vec<Callee>,
    handled: AtomicU64,
    random: Mutex<fastrand::Rng>,
    at_work: AtWork,
}

impl Service {
    pub(crate) fn new(
        config: ServiceConfig,
        callees: Vec<Callee>,
        seed: u64,
        at_work: AtWork,
    ) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { config, callees, handled: AtomicU64::new(0), random, at_work }
    }

    /// Requests that have arrived at the handler.
    pub(crate) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// Handles a request.
    pub(crate) async fn handle(self: Arc<Self>) -> Result<Response<Full<Bytes>>, NoAnswer> {
        self.handled.fetch_add(1, Ordering::Relaxed);
        let status = match (self.config.fault, self.config.detached) {
            (Fault::Hangs, _) => std::future::pending().await,
            (Fault::None | Fault::Fails(_) | Fault::Silent, true) => {
                finished(onus::spawn(self.clone().work())).await
            }
            (Fault::None | Fault::Fails(_) | Fault::Silent, false) => self.clone().work().await,
        };
        if self.config.fault == Fault::Silent {
            return Err(NoAnswer);
        }
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        Ok(response)
    }

    async fn work(self: Arc<Self>) -> StatusCode {
        let _working = self.at_work.start();
        let calls = self.clone().calls();
        let can_answer = match self.config.coverage {
            Coverage::Correlated | Coverage::NonCooperative => calls.await,
            Coverage::ContextLost => finished(tokio::spawn(calls)).await,
        };
        if !can_answer {
            StatusCode::BAD_GATEWAY
        } else if self.fails() {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            StatusCode::OK
        }
    }

    /// Makes all calls; whether the service can answer after them.
    async fn calls(self: Arc<Self>) -> bool {
        match self.config.order {
            CallOrder::Sequential => {
                for callee in &self.callees {
                    if !callee.call().await {
                        return false;
                    }
                }
                true
            }
            CallOrder::Parallel => {
                let mut calls = JoinSet::new();
                for index in 0..self.callees.len() {
                    let service = self.clone();
                    let call = async move { service.callees[index].call().await };
                    calls.spawn(InboundScope::current().wrap(call));
                }
                calls.join_all().await.into_iter().all(|can_answer| can_answer)
            }
        }
    }

    /// Draws whether the service fails this request by itself.
    fn fails(&self) -> bool {
        match self.config.fault {
            Fault::None | Fault::Silent | Fault::Hangs => false,
            Fault::Fails(rate) => {
                self.random.lock().unwrap_or_else(PoisonError::into_inner).f64() < rate
            }
        }
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
