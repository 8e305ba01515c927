//! `POST /api/v1/reports`: an agent reports what it has counted.

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use bytes::Bytes;
use onus_api::{Report, SCHEMA_VERSION};

use super::body::Body;
use super::problem::Refusal;
use crate::access::Who;
use crate::config::Limits;
use crate::engine::Analysis;

/// The largest count of a report: more calls than any process makes in its life.
const COUNT_MAX: u64 = 1 << 40;

pub(crate) async fn take(
    State(analysis): State<Analysis>,
    who: Who,
    body: Result<Body, Refusal>,
) -> Result<Response, Refusal> {
    let limits = analysis.config().limits;
    let refused = |_: &Refusal| analysis.reports().refused();
    let (report, text) = read(body, &who, &limits).inspect_err(refused)?;
    analysis.must_own(&report.service, "/api/v1/reports")?;
    if !analysis.book().has_room_for(&report.service) {
        analysis.reports().put_off();
        let detail = format!("{} services are remembered", limits.instances);
        return Err(Refusal::later("full", "there is no room for another service", detail));
    }
    let why = match analysis.take(report, text).await {
        Ok(accepted) => {
            analysis.reports().stored(accepted.repeated);
            return Ok(Json(accepted).into_response());
        }
        Err(why) => why,
    };
    analysis.reports().put_off();
    Err(why.into())
}

fn read(
    body: Result<Body, Refusal>,
    who: &Who,
    limits: &Limits,
) -> Result<(Report, Bytes), Refusal> {
    let body = body?;
    let report: Report = body.parse()?;
    check(&report, limits).map_err(Refusal::report)?;
    who.must_speak_for(&report.service)?;
    Ok((report, body.0))
}

/// What would be wrong with counting the report.
fn check(report: &Report, limits: &Limits) -> Result<(), String> {
    if report.schema_version == 0 || report.schema_version > SCHEMA_VERSION {
        return Err(format!(
            "schema_version is {}; this analysis knows 1 to {SCHEMA_VERSION}: update it before its agents",
            report.schema_version
        ));
    }
    for (what, name) in [("service", &report.service), ("instance", &report.instance)] {
        if !is_name(name) {
            return Err(format!(
                "{what} is {name:?}; allowed is 1 to 128 printable ASCII characters"
            ));
        }
    }
    if report.sequence == 0 {
        return Err("sequence is 0; the first report has 1".to_owned());
    }
    let rows = report.edges.len() + report.procedures.len();
    if rows > limits.report_rows {
        let most = limits.report_rows;
        return Err(format!("{rows} edges and procedures; allowed is {most} in one report"));
    }
    let edges = report.edges.iter().map(|delta| largest(&delta.counts.to_array()));
    let procedures = report.procedures.iter().map(|delta| largest(&delta.counts.to_array()));
    match edges.chain(procedures).max() {
        Some(count) if count > COUNT_MAX => {
            Err(format!("a count is {count}; allowed is up to {COUNT_MAX}"))
        }
        Some(_) | None => Ok(()),
    }
}

fn largest(counts: &[u64]) -> u64 {
    counts.iter().copied().max().unwrap_or(0)
}

/// Whether it can stand in a claim: the rule of agents.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}
