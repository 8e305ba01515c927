//! A reqwest client outside of any server: a job that calls one service.
//!
//! ```sh
//! cargo run -p onus --example reqwest --features reqwest
//! RUST_LOG=onus=debug cargo run -p onus --example reqwest --features reqwest   # each decision
//! ```

use std::time::Duration;

use onus::{CallOutcome, Onus, RetryPolicy};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();

    let policy = RetryPolicy::attempts(3)
        .per_try_timeout(Duration::from_millis(200))
        .deadline(Duration::from_secs(1));
    let onus = Onus::builder("nightly-report")
        .enforce()
        .retry("ledger", policy.clone())
        // POST is not retried unless somebody says that the callee does a repeated one once.
        .retry_procedure("ledger", "POST /entries", policy)
        .build()?;
    let ledger = onus.outbound("ledger").reqwest(reqwest::Client::new());

    let entry = ledger
        .post("http://127.0.0.1:3001/entries")
        .procedure(onus::Procedure::route("/entries"))
        // What the builder here does not have, reqwest's own has.
        .map(|request| request.header("idempotency-key", "2026-08-01").body("17 EUR"));
    match entry.send().await {
        Ok(answer) => match answer.extensions().get::<CallOutcome>() {
            Some(outcome) => tracing::error!(
                status = answer.status().as_u16(),
                attempts = outcome.attempts,
                origin = outcome.origin.as_ref().map(|origin| &*origin.service),
                stop = outcome.stop.as_str(),
                "the ledger failed"
            ),
            None => tracing::info!(status = answer.status().as_u16(), "written"),
        },
        Err(error) => tracing::error!(%error, "no answer from the ledger"),
    }
    Ok(())
}
