//! For tests of a service: a callee that answers by a script, and the claim on what the service
//! answers.
//!
//! A [`Callee`] stands where the service's callee would: on loopback for any client, or in the place
//! of the client itself. It notes what it was sent. A test is then five lines:
//!
#![cfg_attr(feature = "reqwest", doc = "```")]
#![cfg_attr(not(feature = "reqwest"), doc = "```text")]
//! use axum::{Router, body::Body, extract::State, http::{Request, StatusCode}, routing::get};
//! use onus::test::{Answer, Callee, claim};
//! use onus::{Onus, RetryPolicy};
//! use tower::ServiceExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let payments = Callee::new([Answer::status(503).claimed()]);
//! let app = app(payments.listen().await?)?;
//! let answer = app.oneshot(Request::get("/pay").body(Body::empty())?).await?;
//! assert_eq!(payments.attempts(), 2);
//! assert_eq!(claim(answer.headers()), "unclaimed exhausted");
//! # Ok(()) }
//!
//! // The service under test.
//! fn app(payments: String) -> Result<Router, onus::ConfigError> {
//!     let policy = RetryPolicy::attempts(2).no_probes();
//!     let onus = Onus::builder("checkout").enforce().retry("payments", policy).build()?;
//!     let client = onus.outbound("payments").reqwest(reqwest::Client::new());
//!     let routes = Router::new().route("/pay", get(pay)).with_state((client, payments));
//!     Ok(routes.layer(onus.inbound()))
//! }
//!
//! async fn pay(State((client, url)): State<(onus::reqwest::Client, String)>) -> StatusCode {
//!     client.get(url).send().await.map_or(StatusCode::BAD_GATEWAY, |answer| answer.status())
//! }
//! ```
//!
//! Where the service takes any client, [`OutboundLayer::test`](crate::OutboundLayer::test) needs no
//! socket, so that tokio's clock can be paused:
//!
//! ```
//! # use onus::test::{Answer, Callee};
//! # use onus::{CallOutcome, Onus, RetryPolicy};
//! # use tower::ServiceExt;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let policy = RetryPolicy::attempts(2).no_probes();
//! # let onus = Onus::builder("checkout").enforce().retry("payments", policy).build()?;
//! let payments = Callee::new([Answer::status(503).unclaimed().origin("ledger", 0)]);
//! let client = onus.outbound("payments").test(payments.clone());
//! let answer = client.oneshot(http::Request::new(axum::body::Body::empty())).await?;
//! let outcome = answer.extensions().get::<CallOutcome>().unwrap();
//! assert_eq!((payments.attempts(), outcome.stop.as_str()), (1, "suppressed"));
//! # Ok(()) }
//! ```
//!
//! In mode enforce one suppressed retry in 200 is made all the same, as a probe: a test whose counts
//! are exact has a policy with [`no_probes`](crate::RetryPolicy::no_probes).

mod answer;
mod body;
mod callee;
mod listen;

use http::HeaderMap;
use onus_agent::wire::{ClaimHeaders, ClaimText, ParsedClaim};
use onus_agent::{CalleeClaim, Origin};

pub use answer::Answer;
pub use body::AnswerBody;
pub use callee::{Callee, NoAnswer, Received, TestErrors};

/// The claim in a header block: what it says and why, as in metrics, such as `unclaimed exhausted`.
/// `missing` where there is no valid one.
///
/// The block is the head of an answer, or the trailers of a gRPC answer that has some; of a
/// `tonic::Status` it is `status.metadata().clone().into_headers()`.
#[must_use]
pub fn claim(headers: &HeaderMap) -> String {
    let Some(read) = read(headers) else { return CalleeClaim::Missing.as_str().to_owned() };
    let said = CalleeClaim::Reply(read.claim).as_str();
    read.reason.map_or_else(|| said.to_owned(), |reason| format!("{said} {}", reason.as_str()))
}

/// The service that failed first, and how many hops below the one that answers it is, as the claim
/// in a header block says.
#[must_use]
pub fn origin(headers: &HeaderMap) -> Option<Origin> {
    let ClaimText { origin, hops, .. } = read(headers)?;
    Some(Origin { service: origin?, hops: hops.unwrap_or(0) })
}

fn read(headers: &HeaderMap) -> Option<ClaimText> {
    match ClaimHeaders::default().read(headers) {
        ParsedClaim::Valid(read) => Some(read),
        ParsedClaim::Absent | ParsedClaim::Invalid(_) => None,
    }
}
