//! The layer that makes an [`InboundService`].

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use super::service::InboundService;
use crate::correlation::Correlation;
use crate::onus::Onus;
use crate::procedure::{Procedure, ProcedureFn, RequestHead};

/// Wraps a service, outermost, so that its errors carry claims.
#[derive(Clone)]
pub struct InboundLayer {
    onus: Onus,
    procedure: Option<ProcedureFn>,
    correlation: Option<Correlation>,
}

impl InboundLayer {
    pub(crate) fn new(onus: Onus) -> Self {
        Self { onus, procedure: None, correlation: None }
    }

    /// Asks `tell` for the route template of each request, before the request's own extension and
    /// the router's. Return `None` where there is none: the HTTP method alone is then the
    /// procedure. A function that panics has told nothing.
    #[must_use]
    pub fn procedure(
        mut self,
        tell: impl Fn(&RequestHead<'_>) -> Option<Procedure> + Send + Sync + 'static,
    ) -> Self {
        self.procedure = Some(Arc::new(tell));
        self
    }

    /// The application is behind the wrapped service, in another process, and its calls come back
    /// through an [`OutboundLayer`](crate::OutboundLayer) that is told the same.
    #[must_use]
    pub fn across(mut self, correlation: Correlation) -> Self {
        self.correlation = Some(correlation);
        self
    }
}

impl<S> Layer<S> for InboundLayer {
    type Service = InboundService<S>;

    fn layer(&self, inner: S) -> InboundService<S> {
        InboundService::new(
            inner,
            self.onus.clone(),
            self.procedure.clone(),
            self.correlation.clone(),
        )
    }
}

impl fmt::Debug for InboundLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboundLayer").field("onus", &self.onus).finish_non_exhaustive()
    }
}
