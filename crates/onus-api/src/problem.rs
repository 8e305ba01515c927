//! Why a request was refused, as `application/problem+json` (RFC 9457).

use serde::{Deserialize, Serialize};

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem {
    /// What kind of problem it is, a name that never changes: `urn:onus:problem:bad-report`.
    /// `about:blank` where none is said: the status is all of it then.
    #[serde(rename = "type", default = "blank")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What is wrong with this request, and what would be right.
    pub detail: String,
}

fn blank() -> String {
    "about:blank".to_owned()
}

impl Problem {
    /// The media type of its text.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// A problem of this kind; `slug` is the end of its URN.
    #[must_use]
    pub fn new(status: u16, slug: &str, title: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:onus:problem:{slug}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
        }
    }
}
