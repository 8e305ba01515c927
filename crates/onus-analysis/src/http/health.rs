//! `GET /livez` and `GET /readyz`.

use axum::extract::State;

use super::problem::Refusal;
use crate::engine::Analysis;

pub(crate) async fn live() -> &'static str {
    "alive\n"
}

/// Ready means that reports can be stored; classes are served in any case.
pub(crate) async fn ready(State(analysis): State<Analysis>) -> Result<&'static str, Refusal> {
    match analysis.broken() {
        None => Ok("ready\n"),
        Some(why) => Err(Refusal::later("store-broken", "the store cannot be written", why)),
    }
}
