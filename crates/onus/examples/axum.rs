//! An axum service with a reqwest client: what a service author adds.
//!
//! ```sh
//! RUST_LOG=info cargo run -p onus --example axum --features axum,reqwest
//! curl -i -X POST localhost:3000/pay/17
//! ```
//!
//! Nobody answers at `payments`, so the second line shows an error, and whose it is. With
//! `RUST_LOG=onus=debug` the first shows each decision.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use onus::{Onus, RetryPolicy};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();

    // README:begin
    let onus = Onus::builder("checkout") // this service; it observes until told to enforce
        .retry("payments", RetryPolicy::recommended()) // none without this line
        .build()?;
    let payments = onus.outbound("payments").reqwest(reqwest::Client::new());
    let routes = Router::new().route("/pay/{id}", post(pay)).with_state(payments);
    let app = routes.layer(onus.inbound()); // outermost
    // README:end

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await?;
    Ok(())
}

/// A handler as it was, but for the type of the client.
async fn pay(
    State(payments): State<onus::reqwest::Client>,
    Path(id): Path<u32>,
) -> Result<String, StatusCode> {
    let rate = payments.get(format!("http://127.0.0.1:3001/rate/{id}")).send().await;
    let rate = rate.and_then(reqwest::Response::error_for_status);
    match rate {
        Ok(rate) => rate.text().await.map_err(|_| StatusCode::BAD_GATEWAY),
        Err(error) => Err(error.status().unwrap_or(StatusCode::BAD_GATEWAY)),
    }
}
