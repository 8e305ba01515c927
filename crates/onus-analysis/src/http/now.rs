//! `GET /api/v1/now`: how the mesh is at this moment.

use axum::extract::State;
use axum::response::Json;
use onus_api::Snapshot;

use super::problem::Refusal;
use crate::access::{Role, Who};
use crate::clock::Millis;
use crate::engine::Analysis;
use crate::now;

pub(crate) async fn snapshot(
    State(analysis): State<Analysis>,
    who: Who,
) -> Result<Json<Snapshot>, Refusal> {
    who.must_be(Role::Viewer)?;
    let mut snapshot = now::snapshot(&analysis.book(), Millis::now());
    snapshot.elsewhere = analysis.elsewhere();
    Ok(Json(snapshot))
}
