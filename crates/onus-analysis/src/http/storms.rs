//! `GET /api/v1/radius`, `/api/v1/graph` and `/api/v1/incident`.

use axum::extract::State;
use axum::response::Json;
use onus_api::{GraphPage, Incident, RadiusPage};

use super::problem::Refusal;
use super::query::Parameters;
use crate::access::{Role, Who};
use crate::clock::Millis;
use crate::engine::Analysis;
use crate::graph::Mesh;
use crate::incident;

/// The longest window: one day.
const WINDOW_MINUTES: u32 = 24 * 60;

pub(crate) async fn radius(
    State(analysis): State<Analysis>,
    who: Who,
    mut parameters: Parameters,
) -> Result<Json<RadiusPage>, Refusal> {
    who.must_be(Role::Viewer)?;
    let service = parameters.text("service");
    parameters.nothing_else()?;
    let page = tokio::task::spawn_blocking(move || {
        Mesh::of(&analysis.book(), Millis::now()).radius(service.as_deref())
    });
    page.await.map(Json).map_err(|_| failed())
}

pub(crate) async fn graph(
    State(analysis): State<Analysis>,
    who: Who,
) -> Result<Json<GraphPage>, Refusal> {
    who.must_be(Role::Viewer)?;
    let page =
        tokio::task::spawn_blocking(move || Mesh::of(&analysis.book(), Millis::now()).page());
    page.await.map(Json).map_err(|_| failed())
}

pub(crate) async fn incident(
    State(analysis): State<Analysis>,
    who: Who,
    mut parameters: Parameters,
) -> Result<Json<Incident>, Refusal> {
    who.must_be(Role::Viewer)?;
    let now = Millis::now();
    let mut time =
        |name, default: u64| parameters.number(name, 0..=usize::MAX >> 1, default as usize);
    let to = Millis(time("to", now.0)? as u64).minute().saturating_add(1);
    let from = Millis(time("from", now.0.saturating_sub(3_600_000))? as u64).minute();
    parameters.nothing_else()?;
    if from >= to || to - from > WINDOW_MINUTES + 1 {
        let detail = "parameters from and to are milliseconds since 1970, the first before the second, and at most a day apart";
        return Err(Refusal::parameter(detail));
    }
    let windows = analysis.windows(from..to).await?;
    Ok(Json(incident::incident(&analysis.book(), &windows, from, to)))
}

fn failed() -> Refusal {
    Refusal::later("failed", "the graph cannot be made", "try again, and please report it")
}
