//! What all calls through one outbound layer have in common.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use onus_agent::{CallError, Inbound, Symbol};

use crate::correlation::Correlation;
use crate::onus::Onus;
use crate::procedure::{ProcedureFn, RequestHead};
use crate::scope;
use crate::told::told;

/// What all calls through one outbound layer have in common.
pub(crate) struct Hop<C> {
    pub(crate) onus: Onus,
    pub(crate) callee: Callee,
    pub(crate) procedure: Option<ProcedureFn>,
    pub(crate) classify: C,
    /// Whether the wrapped service ends an attempt when the time in `grpc-timeout` is over.
    pub(crate) timed_below: bool,
    /// Whether the attempts of a call leave a trail.
    pub(crate) trails: bool,
    pub(crate) find: Find,
}

/// How the request is found that a call belongs to.
pub(crate) enum Find {
    /// By the task that makes the call.
    Task,
    /// By what the call carries.
    Headers(Correlation),
}

impl Find {
    pub(crate) fn inbound(&self, onus: &Onus, headers: &mut HeaderMap) -> Option<Inbound> {
        match self {
            Self::Task => scope::current(),
            Self::Headers(correlation) => correlation.find(onus.agent(), headers),
        }
    }
}

/// Which service is called.
#[derive(Clone)]
pub(crate) enum Callee {
    Always(Symbol),
    /// Told by each request.
    By(CalleeFn),
}

pub(crate) type CalleeFn = Arc<dyn Fn(&RequestHead<'_>) -> Cow<'static, str> + Send + Sync>;

impl Callee {
    pub(crate) fn of(&self, onus: &Onus, head: &RequestHead<'_>) -> Symbol {
        match self {
            Self::Always(callee) => *callee,
            Self::By(tell) => match told(|| tell(head)) {
                Some(name) => onus.agent().symbols().intern(&name),
                None => Symbol::OTHER,
            },
        }
    }
}

/// Tells what an error of the wrapped service says of the attempt.
///
/// Functions from the error to an [`AttemptError`] are classifiers. An error whose classifier
/// panics counts as a broken connection.
///
/// Where the error is a `tower::BoxError`, put the finished client into a `tower::util::BoxCloneSyncService`: today's compiler cannot see
/// that a future which holds such a client is `Send` ("implementation is not general enough").
///
/// ```
/// use onus::{AttemptError, CallError};
/// use tower::load_shed::error::Overloaded;
///
/// # fn client(onus: onus::Onus) {
/// onus.outbound("ledger").classify_errors(|error: &tower::BoxError| {
///     match error.is::<Overloaded>() {
///         true => AttemptError::Refused,
///         false => CallError::Reset.into(),
///     }
/// });
/// # }
/// ```
pub trait ClassifyError<E> {
    /// What the error says.
    fn classify(&self, error: &E) -> AttemptError;
}

/// What an error of the wrapped service says of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptError {
    /// The callee gave no answer. Any such error is silence to the caller; the kind matters to
    /// policies that retry some errors and not others, and to logs.
    Failed(CallError),
    /// A breaker or a limit below the layer refused to send the request. It counts as no attempt,
    /// is not retried, and callers above do not retry it either (protocol §3, criteria-4).
    Refused,
}

impl From<CallError> for AttemptError {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

/// Takes every error of the wrapped service for a broken connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unclassified;

impl<E> ClassifyError<E> for Unclassified {
    fn classify(&self, _: &E) -> AttemptError {
        AttemptError::Failed(CallError::Reset)
    }
}

impl<E, F: Fn(&E) -> AttemptError> ClassifyError<E> for F {
    fn classify(&self, error: &E) -> AttemptError {
        self(error)
    }
}
