//! The outbound layer: a failed call is retried where the policy allows it and its error is owned
//! by the callee, and nowhere else.
//!
//! Without a policy for the callee it retries nothing and only keeps account of the call, for the
//! claim on the error of the request that the call belongs to. On the wire, a retry carries
//! `onus-attempt`, and after a silent failure `onus-mark`. The application sees neither claims nor
//! vetoes; how a call failed for good is in the response's extensions as
//! [`CallOutcome`](crate::CallOutcome).

mod body;
mod call;
mod future;
mod hop;
mod layer;
mod peek;
mod rest;
mod service;
mod start;

pub use body::OutboundBody;
pub use future::OutboundFuture;
pub(crate) use hop::Callee;
pub use hop::{AttemptError, ClassifyError, Unclassified};
pub use layer::OutboundLayer;
pub use service::OutboundService;
