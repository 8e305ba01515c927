//! A reqwest client whose calls are retried and accounted for under ownership.
//!
//! [`OutboundLayer::reqwest`](crate::OutboundLayer::reqwest) wraps a client; what it builds and
//! sends looks like reqwest's own, and the response is a [`reqwest::Response`]. Redirects, content
//! lengths, cookies, proxies and errors stay as they are: each attempt is one `execute` of the
//! wrapped client. A timeout of reqwest ends an attempt; the time of all attempts together is
//! limited by [`RetryPolicy::deadline`](crate::RetryPolicy::deadline).
//!
//! A handler that took a `State<reqwest::Client>` takes a `State<onus::reqwest::Client>`.
//!
//! ```
//! # async fn pay(onus: onus::Onus) -> Result<(), reqwest::Error> {
//! let payments = onus.outbound("payments").reqwest(reqwest::Client::new());
//! let answer = payments.post("http://payments/charge").body("17 EUR").send().await?;
//! # Ok(()) }
//! ```
//!
//! What needs a feature of reqwest is reached by [`RequestBuilder::map`]: with `json`, `query` and
//! `form` of reqwest enabled, `.json(&charge)` is written
//!
//! ```text
//! payments.post(url).map(|request| request.json(&charge)).send().await?
//! ```
//!
//! Calls are told apart by method, and by route template where the request names one:
//!
//! ```
//! # async fn pay(payments: onus::reqwest::Client, id: u32) -> Result<(), reqwest::Error> {
//! use onus::Procedure;
//!
//! let rate = payments.get(format!("http://payments/rate/{id}"));
//! let answer = rate.procedure(Procedure::route("/rate/{id}")).send().await?;
//! # Ok(()) }
//! ```

mod client;
mod request;
mod transport;

pub use client::Client;
pub use request::RequestBuilder;
