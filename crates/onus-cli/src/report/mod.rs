//! `onus report`: what an incident was, and what was prevented.

mod html;
pub(crate) mod markdown;
mod words;

use onus_api::Window;

use crate::analysis::{block_on, json, print, tell, whole, window};
use crate::cli::{ReportFormat, ReportOptions, Span};

pub(crate) fn run(options: &ReportOptions) -> anyhow::Result<()> {
    let span = Span { since: Some(options.since), until: options.until };
    let times = window(&span);
    let query: Vec<_> = times.iter().map(|(name, time)| (*name, time.as_str())).collect();
    let counted: Window = block_on(whole(&options.server, async |client| {
        client.get("/api/v1/window", &query).await
    }))?;
    let incident = onus_analysis::incident(&counted);
    if options.output == ReportFormat::Json {
        return print(&json(&incident)?);
    }
    tell(&incident.missing);
    print(&match options.output {
        ReportFormat::Html => html::render(&incident),
        ReportFormat::Md | ReportFormat::Json => markdown::render(&incident),
    })
}
