//! A reqwest client whose calls are retried and accounted for under ownership.
//!
//! [`OutboundLayer::reqwest`](crate::OutboundLayer::reqwest) wraps a client; what it builds and
//! sends looks like reqwest's own, and the response is a [`reqwest::Response`]. Redirects, content
//! lengths, cookies, proxies and errors stay as they are: each attempt is one `execute` of the
//! wrapped client. A timeout of reqwest ends an attempt; the time of all attempts together is
//! limited by [`RetryPolicy::deadline`](crate::RetryPolicy::deadline).
//!
//! ```
//! # async fn pay(onus: onus::Onus) -> Result<(), reqwest::Error> {
//! let payments = onus.outbound("payments").reqwest(reqwest::Client::new());
//! let answer = payments.post("http://payments/charge").body("17 EUR").send().await?;
//! # Ok(()) }
//! ```

mod client;
mod request;
mod transport;

pub use client::Client;
pub use request::RequestBuilder;
