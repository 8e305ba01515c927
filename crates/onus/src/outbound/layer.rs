//! The layer that makes an [`OutboundService`].

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use super::hop::{Callee, Find, Hop, Unclassified};
use super::service::OutboundService;
use crate::correlation::Correlation;
use crate::onus::Onus;
use crate::procedure::{Procedure, ProcedureFn, RequestHead};

/// Wraps a client service, so that its calls are retried and accounted for under ownership.
#[derive(Clone)]
pub struct OutboundLayer<C = Unclassified> {
    onus: Onus,
    callee: Callee,
    procedure: Option<ProcedureFn>,
    classify: C,
    timed_below: bool,
    correlation: Option<Correlation>,
    trails: bool,
}

impl OutboundLayer {
    pub(crate) fn new(onus: Onus, callee: Callee) -> Self {
        let (procedure, classify) = (None, Unclassified);
        let (timed_below, correlation, trails) = (false, None, false);
        Self { onus, callee, procedure, classify, timed_below, correlation, trails }
    }
}

impl<C> OutboundLayer<C> {
    /// Asks `tell` for the callee's route template of each request, before the request's
    /// [`Procedure`] extension. A function that panics has told nothing.
    #[must_use]
    pub fn procedure(
        mut self,
        tell: impl Fn(&RequestHead<'_>) -> Option<Procedure> + Send + Sync + 'static,
    ) -> Self {
        self.procedure = Some(Arc::new(tell));
        self
    }

    /// Tells the kinds of the wrapped service's errors apart; see
    /// [`ClassifyError`](super::ClassifyError).
    #[must_use]
    pub fn classify_errors<D>(self, classify: D) -> OutboundLayer<D> {
        let Self { onus, callee, procedure, timed_below, correlation, trails, .. } = self;
        OutboundLayer { onus, callee, procedure, classify, timed_below, correlation, trails }
    }

    /// The application makes its calls from another process, and the requests that they belong to
    /// have come to it through an [`InboundLayer`](crate::InboundLayer) that is told the same.
    #[must_use]
    pub fn across(mut self, correlation: Correlation) -> Self {
        self.correlation = Some(correlation);
        self
    }

    /// The wrapped service chooses among instances of the callee: the bodies of calls that may have
    /// another attempt carry a [`Trail`](crate::replay::Trail), which costs an allocation.
    #[must_use]
    pub fn trails(mut self) -> Self {
        self.trails = true;
        self
    }

    /// The wrapped service ends an attempt by itself when the time in `grpc-timeout` is over.
    #[cfg(feature = "tonic")]
    pub(crate) fn timed_below(mut self) -> Self {
        self.timed_below = true;
        self
    }
}

impl<S, C: Clone> Layer<S> for OutboundLayer<C> {
    type Service = OutboundService<S, C>;

    fn layer(&self, inner: S) -> OutboundService<S, C> {
        let hop = Hop {
            onus: self.onus.clone(),
            callee: self.callee.clone(),
            procedure: self.procedure.clone(),
            classify: self.classify.clone(),
            timed_below: self.timed_below,
            trails: self.trails,
            find: self.correlation.clone().map_or(Find::Task, Find::Headers),
        };
        OutboundService::new(inner, Arc::new(hop))
    }
}

impl<C> fmt::Debug for OutboundLayer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundLayer").field("onus", &self.onus).finish_non_exhaustive()
    }
}
