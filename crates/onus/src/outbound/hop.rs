//! What all calls through one outbound layer have in common.

use std::borrow::Cow;
use std::sync::Arc;

use onus_agent::{CallError, Symbol};

use crate::onus::Onus;
use crate::procedure::{ProcedureFn, RequestHead};
use crate::told::told;

/// What all calls through one outbound layer have in common.
pub(crate) struct Hop<C> {
    pub(crate) onus: Onus,
    pub(crate) callee: Callee,
    pub(crate) procedure: Option<ProcedureFn>,
    pub(crate) classify: C,
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

/// Tells what kind of failure an error of the wrapped service is.
///
/// Any such error is silence to the caller; the kind matters to policies that retry some errors
/// and not others, and to logs. Functions from the error to a [`CallError`] are classifiers. An
/// error whose classifier panics counts as a broken connection.
pub trait ClassifyError<E> {
    /// The kind of failure.
    fn classify(&self, error: &E) -> CallError;
}

/// Takes every error of the wrapped service for a broken connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unclassified;

impl<E> ClassifyError<E> for Unclassified {
    fn classify(&self, _: &E) -> CallError {
        CallError::Reset
    }
}

impl<E, F: Fn(&E) -> CallError> ClassifyError<E> for F {
    fn classify(&self, error: &E) -> CallError {
        self(error)
    }
}
