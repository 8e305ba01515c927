//! The layers in the stacks people use, over real connections.

mod axum;
mod hyper;
mod peer;
mod reqwest;
mod scripted;
mod tonic;

use std::time::Duration;

/// Waits until something holds that another task brings about.
async fn until(holds: impl Fn() -> bool) {
    let waits = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waits).await.expect("it comes to hold");
}
