//! hyper-util's pooled client, wrapped with its kinds of errors told apart.
//!
//! [`OutboundLayer::hyper`] takes a client whose request body it leaves open, so that the type
//! follows from the requests that are sent:
//!
//! ```
//! # async fn pay(onus: onus::Onus) -> Result<(), hyper_util::client::legacy::Error> {
//! use bytes::Bytes;
//! use http_body_util::Full;
//! use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! use tower_service::Service;
//!
//! let client = Client::builder(TokioExecutor::new()).build_http();
//! let mut payments = onus.outbound("payments").hyper(client);
//! let request = http::Request::post("http://payments/charge");
//! let answer = payments.call(request.body(Full::<Bytes>::from("17 EUR")).unwrap()).await?;
//! # Ok(()) }
//! ```
//!
//! On the serving side hyper needs nothing of its own: an
//! [`InboundService`](crate::InboundService) is a tower service, which hyper-util's
//! `TowerToHyperService` takes.

use std::error::Error as _;

use hyper_util::client::legacy::{Client, Error};
use onus_agent::CallError;
use tower_layer::Layer;

use crate::outbound::{AttemptError, ClassifyError, OutboundLayer, OutboundService};
use crate::replay::ReplayBody;

impl<C> OutboundLayer<C> {
    /// Wraps a client of hyper-util.
    #[must_use]
    pub fn hyper<N, B>(
        self,
        client: Client<N, ReplayBody<B>>,
    ) -> OutboundService<Client<N, ReplayBody<B>>, HyperErrors> {
        self.classify_errors(HyperErrors).layer(client)
    }
}

/// Tells the errors of hyper-util's client apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperErrors;

impl ClassifyError<Error> for HyperErrors {
    fn classify(&self, error: &Error) -> AttemptError {
        if error.is_connect() {
            return AttemptError::Failed(CallError::Connect);
        }
        let source = error.source().and_then(|source| source.downcast_ref::<hyper::Error>());
        AttemptError::Failed(match source {
            Some(error) if error.is_timeout() => CallError::Timeout,
            Some(error) if error.is_parse() => CallError::Protocol,
            Some(_) | None => CallError::Reset,
        })
    }
}
