//! `GET /api/v1/edges`: figures of edges, for people and tools.

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};

use super::problem::Refusal;
use super::query::Parameters;
use crate::access::{Role, Who};
use crate::clock::Millis;
use crate::edges::{self, Asked};
use crate::engine::Analysis;

/// The most edges of one page.
const LIMIT_MAX: usize = 10_000;

pub(crate) async fn page(
    State(analysis): State<Analysis>,
    who: Who,
    mut parameters: Parameters,
) -> Result<Response, Refusal> {
    who.must_be(Role::Viewer)?;
    let asked = Asked {
        caller: parameters.text("caller"),
        callee: parameters.text("callee"),
        after: parameters.number("after", 0..=usize::MAX >> 1, 0)?,
        limit: parameters.number("limit", 1..=LIMIT_MAX, 1_000)?,
    };
    let now = Millis::now();
    let range = if parameters.has(["from", "to"]) { Some(parameters.window(now)?) } else { None };
    parameters.nothing_else()?;
    let window = match range {
        None => None,
        Some(range) => Some(edges::kept(&analysis.windows(range).await?)),
    };
    let mut page = edges::page(&analysis.book(), &asked, window.as_ref(), now);
    page.elsewhere = analysis.elsewhere();
    Ok(Json(page).into_response())
}
