//! Which request a piece of code serves.
//!
//! The inbound layer enters the scope while the handler runs and while the body of its answer is
//! made; the outbound layer looks it up. A plain `tokio::spawn` leaves it: what the task calls is
//! then counted as untied. [`spawn`] and [`InboundScope::wrap`] carry it over.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use onus_agent::Inbound;
use pin_project_lite::pin_project;
use tokio::task::JoinHandle;

thread_local! {
    /// The request that the code running on this thread serves. It is there only within [`enter`],
    /// so that it follows the task and not the thread.
    static INBOUND: RefCell<Option<Inbound>> = const { RefCell::new(None) };
}

/// The request that the current task serves, if any.
#[derive(Clone)]
pub struct InboundScope(Option<Inbound>);

impl InboundScope {
    /// The scope that the caller runs in.
    #[must_use]
    pub fn current() -> Self {
        Self(current())
    }

    /// Whether there is a request.
    #[must_use]
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Runs `future` in this scope, wherever it is polled.
    pub fn wrap<F>(self, future: F) -> Scoped<F> {
        Scoped { future, inbound: self.0 }
    }
}

pin_project! {
    /// A future that runs in the scope of a request; see [`InboundScope::wrap`].
    pub struct Scoped<F> {
        #[pin]
        future: F,
        inbound: Option<Inbound>,
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _scope = enter(this.inbound);
        this.future.poll(cx)
    }
}

/// Tokio's `spawn`, keeping the scope: what the task calls belongs to the request that spawned
/// it.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(InboundScope::current().wrap(future))
}

pub(crate) fn current() -> Option<Inbound> {
    INBOUND.with_borrow(Clone::clone)
}

/// Enters the scope of `inbound` until the guard is dropped. The request is moved there and back,
/// not cloned: a clone costs two contended counts for each poll.
#[must_use]
pub(crate) fn enter(inbound: &mut Option<Inbound>) -> Entered<'_> {
    INBOUND.with_borrow_mut(|current| std::mem::swap(current, inbound));
    Entered(inbound)
}

/// Leaves the scope when it is dropped, also by a panic.
pub(crate) struct Entered<'a>(&'a mut Option<Inbound>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        INBOUND.with_borrow_mut(|current| std::mem::swap(current, self.0));
    }
}
