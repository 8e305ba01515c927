//! Bodies of requests, with a limit of size, and refusals that say what is wrong.

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use bytes::Bytes;
use serde::Deserialize;

use super::problem::Refusal;
use crate::engine::Analysis;

/// A body, read to its end.
pub(crate) struct Body(pub(crate) Bytes);

impl FromRequest<Analysis> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, analysis: &Analysis) -> Result<Self, Refusal> {
        let most = analysis.config().limits.report_bytes;
        let body = Bytes::from_request(request, analysis).await;
        body.map(Self).map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Refusal::too_large(format!("a body has at most {most} bytes"))
            }
            _ => Refusal::body(error.body_text()),
        })
    }
}

impl Body {
    /// What its JSON says.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Refusal> {
        serde_json::from_slice(&self.0).map_err(|error| Refusal::body(error.to_string()))
    }
}
