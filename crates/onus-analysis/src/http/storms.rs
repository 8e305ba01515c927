//! `GET /api/v1/radius`, `/api/v1/graph`, `/api/v1/incident` and `/api/v1/window`.

use axum::extract::State;
use axum::response::Json;
use onus_api::{GraphPage, Incident, RadiusPage, Window};

use super::problem::Refusal;
use super::query::Parameters;
use crate::access::{Role, Who};
use crate::clock::Millis;
use crate::engine::Analysis;

pub(crate) async fn radius(
    State(analysis): State<Analysis>,
    who: Who,
    mut parameters: Parameters,
) -> Result<Json<RadiusPage>, Refusal> {
    who.must_be(Role::Viewer)?;
    let service = parameters.text("service");
    parameters.nothing_else()?;
    let page = tokio::task::spawn_blocking(move || {
        crate::graph::radius(&part(&analysis), service.as_deref())
    });
    page.await.map(Json).map_err(|_| failed())
}

pub(crate) async fn graph(
    State(analysis): State<Analysis>,
    who: Who,
) -> Result<Json<GraphPage>, Refusal> {
    who.must_be(Role::Viewer)?;
    let page = tokio::task::spawn_blocking(move || part(&analysis));
    page.await.map(Json).map_err(|_| failed())
}

/// The part of the graph whose callers this analysis has.
fn part(analysis: &Analysis) -> GraphPage {
    let page = crate::graph::page(&analysis.book(), Millis::now());
    GraphPage { elsewhere: analysis.elsewhere(), ..page }
}

pub(crate) async fn incident(
    analysis: State<Analysis>,
    who: Who,
    parameters: Parameters,
) -> Result<Json<Incident>, Refusal> {
    let Json(window) = window(analysis, who, parameters).await?;
    Ok(Json(crate::incident::incident(&window)))
}

pub(crate) async fn window(
    State(analysis): State<Analysis>,
    who: Who,
    mut parameters: Parameters,
) -> Result<Json<Window>, Refusal> {
    who.must_be(Role::Viewer)?;
    let minutes = parameters.window(Millis::now())?;
    parameters.nothing_else()?;
    let windows = analysis.windows(minutes.clone()).await?;
    let mut window =
        crate::incident::window(&analysis.book(), &windows, minutes.start, minutes.end);
    window.elsewhere = analysis.elsewhere();
    Ok(Json(window))
}

fn failed() -> Refusal {
    Refusal::later("failed", "the graph cannot be made", "try again, and please report it")
}
