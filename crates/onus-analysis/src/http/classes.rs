//! `GET /api/v1/classes`: an agent asks for its classes, and may wait for the next ones.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::problem::Refusal;
use super::query::Parameters;
use super::reports::is_name;
use crate::access::Who;
use crate::classes;
use crate::engine::Analysis;

/// The longest that an agent may wait; proxies between give up at a minute, many of them.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub(crate) async fn page(
    State(analysis): State<Analysis>,
    who: Who,
    uri: Uri,
    headers: HeaderMap,
    mut parameters: Parameters,
) -> Result<Response, Refusal> {
    let service = parameters.required("service")?;
    parameters.nothing_else()?;
    if !is_name(&service) {
        let detail = "parameter service; allowed is 1 to 128 printable ASCII characters";
        return Err(Refusal::parameter(detail));
    }
    who.must_read(&service)?;
    analysis.must_own(&service, uri.path_and_query().map_or("/", |path| path.as_str()))?;
    let until = Instant::now() + wait(&headers);
    let known = headers.get(IF_NONE_MATCH);
    let mut changes = analysis.changes();
    loop {
        changes.mark_unchanged();
        let version = version(&analysis, &service);
        let page = analysis.class_page(&service);
        let etag = classes::etag(&page);
        if known.is_none_or(|known| known.as_bytes() != etag.as_bytes()) {
            let text = serde_json::to_vec(&page).unwrap_or_default();
            return Ok(answer(StatusCode::OK, &etag, text));
        }
        while self::version(&analysis, &service) == version {
            match tokio::time::timeout_at(until, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => {
                    return Ok(answer(StatusCode::NOT_MODIFIED, &etag, Vec::new()));
                }
            }
        }
    }
}

/// What changes with what the agents of a service are told.
fn version(analysis: &Analysis, service: &str) -> (Option<u64>, u64, bool) {
    let book = analysis.book();
    let version = book.service(service).map(|row| row.version);
    (version, book.said.epoch, analysis.broken().is_some())
}

/// How long the agent would wait (RFC 7240).
fn wait(headers: &HeaderMap) -> Duration {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let wait = preferences
        .flat_map(|value| value.split(','))
        .find_map(|preference| preference.trim().strip_prefix("wait=")?.parse().ok());
    wait.map_or(Duration::ZERO, |seconds| Duration::from_secs(seconds).min(WAIT_MAX))
}

fn answer(status: StatusCode, etag: &str, text: Vec<u8>) -> Response {
    let mut response = (status, text).into_response();
    let headers = response.headers_mut();
    if status == StatusCode::OK {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    headers.insert(VARY, HeaderValue::from_static("prefer"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        headers.insert(ETAG, etag);
    }
    response
}
