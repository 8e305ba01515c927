//! The inbound layer: what a service answers says whose error it is.
//!
//! It belongs outermost, around everything that may make an answer. On the wire, an answer that is
//! an error of the protocol carries `onus-claim`, and in mode enforce the vetoes for callers
//! without Onus where the error is unclaimed. Claims that the application copied from elsewhere
//! are taken out. A success passes as it is. In mode off the layer changes nothing.
//!
//! While the handler runs, and while the body of its answer is made, calls through an
//! [`OutboundService`](crate::OutboundService) belong to the request.

mod body;
mod future;
mod layer;
mod served;
mod service;

pub use body::InboundBody;
pub use future::InboundFuture;
pub use layer::InboundLayer;
pub use service::InboundService;
