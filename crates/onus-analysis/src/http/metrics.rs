//! `GET /metrics`.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::problem::Refusal;
use crate::access::{Role, Who};
use crate::engine::Analysis;
use crate::metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) async fn scrape(
    State(analysis): State<Analysis>,
    who: Who,
) -> Result<Response, Refusal> {
    who.must_be(Role::Viewer)?;
    // A quarter of a million edges take a second: not on a thread that serves others.
    let text = tokio::task::spawn_blocking(move || metrics::scrape(&analysis)).await;
    let failed = || Refusal::later("scrape-failed", "the metrics cannot be written", "try again");
    let text = text.map_err(|_| failed())?.map_err(|_| failed())?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}
