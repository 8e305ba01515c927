//! `GET /livez`, `GET /readyz` and `GET /openapi.json`.

use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use onus_api::ANALYSIS_OPENAPI;

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

/// What can be asked here, for tools; it tells nothing of the mesh.
pub(crate) async fn openapi() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(CONTENT_TYPE, "application/json")], ANALYSIS_OPENAPI)
}
