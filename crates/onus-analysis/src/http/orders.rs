//! What operators say: modes, shields, all that holds, and the record of it.

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use onus_api::{Audit, OrderRequest, Orders, SCHEMA_VERSION};

use super::body::Body;
use super::problem::Refusal;
use super::query::Parameters;
use crate::access::{Role, Who};
use crate::clock::Millis;
use crate::engine::Analysis;

/// The most lines of the audit log in one answer.
const AUDIT_MAX: usize = 10_000;

/// `GET /api/v1/orders`: all that holds.
pub(crate) async fn all(
    State(analysis): State<Analysis>,
    who: Who,
) -> Result<Json<Orders>, Refusal> {
    who.must_be(Role::Viewer)?;
    let book = analysis.book();
    let mut overrides: Vec<_> = book.said.overrides.iter().cloned().collect();
    overrides.sort_by_cached_key(|it| (it.caller.clone(), it.callee.clone(), it.id.clone()));
    let mut orders: Vec<_> = book.said.orders().cloned().collect();
    orders.retain(|order| order.mode.is_some() || order.shield_until.is_some());
    orders.sort_by_cached_key(|order| order.service.clone());
    let elsewhere = analysis.elsewhere();
    Ok(Json(Orders {
        schema_version: SCHEMA_VERSION,
        overrides,
        orders,
        missing: Vec::new(),
        elsewhere,
    }))
}

/// `POST /api/v1/orders`: a mode or a shield. Shields are an operator's, modes an administrator's.
pub(crate) async fn order(
    State(analysis): State<Analysis>,
    who: Who,
    body: Body,
) -> Result<Response, Refusal> {
    let asked: OrderRequest = body.parse()?;
    if asked.service != "*" {
        analysis.must_own(&asked.service, "/api/v1/orders")?;
    }
    who.must_be(if asked.mode.is_some() { Role::Admin } else { Role::Operator })?;
    let change = analysis.book().said.order_of(asked, Millis::now()).map_err(Refusal::order)?;
    analysis.change(vec![change], who.name).await?;
    Ok(all_of(&analysis))
}

/// `GET /api/v1/audit`: the newest lines.
pub(crate) async fn audit(
    State(analysis): State<Analysis>,
    who: Who,
    mut parameters: Parameters,
) -> Result<Json<Audit>, Refusal> {
    who.must_be(Role::Viewer)?;
    let most = parameters.number("limit", 1..=AUDIT_MAX, 100)?;
    parameters.nothing_else()?;
    let entries = analysis.audit(most).await?;
    Ok(Json(Audit { schema_version: SCHEMA_VERSION, entries }))
}

pub(crate) fn all_of(analysis: &Analysis) -> Response {
    let book = analysis.book();
    let overrides = book.said.overrides.iter().cloned().collect();
    let orders = book.said.orders().cloned().collect();
    let elsewhere = analysis.elsewhere();
    Json(Orders {
        schema_version: SCHEMA_VERSION,
        overrides,
        orders,
        missing: Vec::new(),
        elsewhere,
    })
    .into_response()
}
