//! Tower layers that stop retry storms by error ownership.
//!
//! A service that fails because one of its own calls failed passes the error on unclaimed, and
//! nobody above retries it: only the direct caller of the culprit does. The layers observe until
//! they are told to enforce, add no retry that was not configured, and let every request pass
//! whatever breaks in them.
//!
#![cfg_attr(all(feature = "axum", feature = "reqwest"), doc = "```no_run")]
#![cfg_attr(not(all(feature = "axum", feature = "reqwest")), doc = "```text")]
//! use axum::{Router, extract::State, http::StatusCode, routing::post};
//! use onus::{Onus, RetryPolicy};
//!
//! async fn pay(State(payments): State<onus::reqwest::Client>) -> StatusCode {
//!     match payments.get("http://payments/rate").send().await {
//!         Ok(answer) => answer.status(),
//!         Err(_) => StatusCode::BAD_GATEWAY,
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let onus = Onus::builder("checkout") // this service; it observes until told to enforce
//!     .retry("payments", RetryPolicy::recommended()) // none without this line
//!     .build()?;
//! let payments = onus.outbound("payments").reqwest(reqwest::Client::new());
//! let routes = Router::new().route("/pay/{id}", post(pay)).with_state(payments);
//! let app = routes.layer(onus.inbound()); // outermost
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//! # axum::serve(listener, app).await?;
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! None is on by default; without any, the layers wrap services and clients of tower.
//!
//! | feature | for | adds |
//! |---|---|---|
//! | `axum` | axum 0.8 | procedures from the router's route templates; without it the HTTP method stands alone |
//! | `reqwest` | reqwest 0.13 | `OutboundLayer::reqwest` and module `reqwest`, a client with reqwest's methods |
//! | `hyper` | hyper 1, hyper-util 0.1 | `OutboundLayer::hyper` and module `hyper` |
//! | `report` | `onus analysis` | `Onus::report_to` and module `report`: counts to the analysis, classes back |
//! | `report-tls` | `onus analysis` by TLS | `Analysis::authorities` and `Analysis::identity` |
//! | `tonic` | tonic 0.14 | `OutboundLayer::tonic` and module `tonic`, a channel for generated clients |
//! | `test` | tests of a service | module `test`, a callee that answers by a script |
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | configure a service, switch it at run time, export its metrics | [`Onus::builder`], [`OnusBuilder`], [`Onus`] |
//! | say what is retried, how often and within which time | [`RetryPolicy`], [`ErrorSet`] |
//! | wrap what is served | [`Onus::inbound`], [`InboundLayer`] |
//! | wrap a client | [`Onus::outbound`], [`Onus::outbound_by`], [`OutboundLayer`] |
//! | host the layers beside an application in another process | [`Correlation`] |
//! | name a route template | [`Procedure`] |
//! | keep the request in other tasks | [`spawn()`], [`InboundScope`] |
//! | read why a call failed | [`CallOutcome`], [`Stop`], [`Origin`] |
//! | choose how far ownership reaches | [`Mode`], [`Share`], [`Switches`] |
//! | test a service | module `test`, with the feature of that name |
//!
//! Decisions are made in `onus-core` and state is kept in `onus-agent`; what a service needs of them
//! is exported here.

mod answer;
mod clock;
mod correlation;
#[cfg(feature = "hyper")]
pub mod hyper;
pub mod inbound;
mod onus;
pub mod outbound;
mod procedure;
pub mod replay;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "reqwest")]
pub mod reqwest;
mod scope;
mod switch_file;
#[cfg(feature = "test")]
pub mod test;
mod told;
#[cfg(feature = "tonic")]
pub mod tonic;

pub use onus_agent::{
    Annotation, Arm, CallError, CallOutcome, CalleeClaim, ConfigError, EdgeClass, EdgeView,
    ErrorSet, Limits, Mode, Origin, PolicyError, RetryPolicy, Share, Source, Stop, SwitchError,
    SwitchFile, Switches,
};

/// The text of claims, for hosts that show it to people.
pub mod claim {
    pub use onus_agent::wire::{ClaimHeaders, ClaimText, ParsedClaim};
    pub use onus_agent::{Claim, ClaimReason};
}

pub use prometheus_client;

pub use crate::correlation::Correlation;
pub use crate::inbound::{InboundLayer, InboundService};
pub use crate::onus::{Onus, OnusBuilder};
pub use crate::outbound::{AttemptError, OutboundLayer, OutboundService};
pub use crate::procedure::{Procedure, RequestHead};
pub use crate::scope::{InboundScope, Scoped, spawn};
