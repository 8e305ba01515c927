//! `onus report`: what an incident was, and what was prevented.

mod html;
pub(crate) mod markdown;
mod words;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onus_api::Incident;

use crate::analysis::{Client, block_on, json, print};
use crate::cli::{ReportFormat, ReportOptions};

pub(crate) fn run(options: &ReportOptions) -> anyhow::Result<()> {
    let client = Client::new(&options.server)?;
    let to = now().saturating_sub(options.until.unwrap_or_default());
    let from = to.saturating_sub(options.since);
    let [from, to] = [from, to].map(|time| time.as_millis().to_string());
    let query = [("from", from.as_str()), ("to", to.as_str())];
    let incident: Incident = block_on(client.get("/api/v1/incident", &query))?;
    print(&match options.output {
        ReportFormat::Md => markdown::render(&incident),
        ReportFormat::Html => html::render(&incident),
        ReportFormat::Json => json(&incident)?,
    })
}

#[expect(clippy::disallowed_methods, reason = "people say how long ago")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
