//! tonic's channel, wrapped for generated clients.
//!
//! [`OutboundLayer::tonic`] takes a channel and gives a [`Channel`], which a generated client takes
//! in the place of tonic's:
//!
//! ```
//! use onus::Onus;
//! use tonic_health::pb::health_client::HealthClient;
//!
//! struct Shop {
//!     ledger: HealthClient<onus::tonic::Channel>,
//! }
//!
//! fn shop(onus: &Onus, channel: tonic::transport::Channel) -> Shop {
//!     Shop { ledger: HealthClient::new(onus.outbound("ledger").tonic(channel)) }
//! }
//! ```
//!
//! Each attempt is one call through the wrapped channel, which may balance and reconnect. An
//! interceptor of the client runs once for all of them.
//!
//! On the serving side tonic needs nothing of its own:
//!
//! ```no_run
//! # async fn serve<S: tonic_health::pb::health_server::Health>(
//! #     onus: onus::Onus,
//! #     service: tonic_health::pb::health_server::HealthServer<S>,
//! #     address: std::net::SocketAddr,
//! # ) -> Result<(), tonic::transport::Error> {
//! use tonic::transport::Server;
//!
//! Server::builder().layer(onus.inbound()).add_service(service).serve(address).await
//! # }
//! ```

use std::error::Error as StdError;
use std::iter;
use std::task::{Context, Poll};

use http::{Request, Response};
use onus_agent::CallError;
use tonic::body::Body;
use tonic::transport::{self, Error};
use tonic::{ConnectError, TimeoutExpired};
use tower_layer::Layer;
use tower_service::Service;

use crate::outbound::{AttemptError, ClassifyError, OutboundLayer, OutboundService};
use crate::replay::ReplayBody;

/// A channel whose calls are retried and accounted for under ownership; see
/// [`OutboundLayer::tonic`]. Cheap to clone, like the channel in it.
pub type Channel = OutboundService<Transport, TonicErrors>;

impl<C> OutboundLayer<C> {
    /// Wraps a channel of tonic.
    #[must_use]
    pub fn tonic(self, channel: transport::Channel) -> Channel {
        self.classify_errors(TonicErrors).timed_below().layer(Transport(channel))
    }
}

/// The wrapped channel as the layer's inner service.
#[derive(Clone, Debug)]
pub struct Transport(transport::Channel);

impl Service<Request<ReplayBody<Body>>> for Transport {
    type Response = Response<Body>;
    type Error = Error;
    type Future = transport::channel::ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReplayBody<Body>>) -> Self::Future {
        // A body that is sent once stays in the box that it has.
        self.0.call(request.map(|body| body.into_once().unwrap_or_else(Body::new)))
    }
}

/// Tells the errors of tonic's channel apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct TonicErrors;

impl ClassifyError<Error> for TonicErrors {
    fn classify(&self, error: &Error) -> AttemptError {
        let first: &(dyn StdError + 'static) = error;
        let mut causes = iter::successors(Some(first), |&cause| cause.source());
        AttemptError::Failed(causes.find_map(kind).unwrap_or(CallError::Reset))
    }
}

/// The kind of a failure, where this cause tells it.
fn kind(cause: &(dyn StdError + 'static)) -> Option<CallError> {
    if cause.is::<ConnectError>() {
        return Some(CallError::Connect);
    }
    let late = cause.is::<TimeoutExpired>()
        || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout);
    late.then_some(CallError::Timeout)
}
