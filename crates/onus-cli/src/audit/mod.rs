//! `onus audit`: reads what there is of a mesh, and prints what `onus-audit` makes of it.

mod json;
mod markdown;
mod metrics;
mod sections;
mod sources;
mod table;

use std::io::Write;

use anyhow::Context;
use onus_audit::{Audit, Evidence, Metrics, audit};
use onus_retry_config::RetryConfig;

use crate::cli::{AuditOptions, AuditOutput};
use crate::exit::Exit;
use crate::graphs::Graphs;
use crate::traces::standard_input_once;

pub(crate) use self::sources::config as retry_config;

/// What was read, and what came of it.
struct Outcome {
    config: RetryConfig,
    traces: Option<onus_traces::Report>,
    metrics: Option<Metrics>,
    graphs: Graphs,
    /// Questions that the server has refused.
    refused: Vec<String>,
    window: String,
    files: usize,
    audit: Audit,
    top: usize,
}

pub(crate) fn run(options: &AuditOptions) -> anyhow::Result<Exit> {
    standard_input_once(options.file.iter().chain(&options.traces))?;
    let (config, files) = sources::config(&options.file)?;
    let traces = sources::traces(&options.traces)?;
    let graphs = Graphs::read(&options.graph)?;
    let (metrics, refused) = match &options.prom {
        Some(url) => {
            let (metrics, refused) = metrics::ask(url, options)?;
            (Some(metrics), refused)
        }
        None => (None, Vec::new()),
    };
    let evidence = Evidence {
        config: &config,
        traces: traces.as_ref(),
        metrics: metrics.as_ref(),
        listed: &graphs.edges,
    };
    let audit = audit(&evidence);
    let window = options.window.clone();
    let outcome = Outcome {
        config,
        traces,
        metrics,
        graphs,
        refused,
        window,
        files,
        audit,
        top: options.top,
    };
    let text = match options.output {
        AuditOutput::Table => table::render(&outcome),
        AuditOutput::Markdown => markdown::render(&outcome),
        AuditOutput::Json => json::render(&outcome)?,
    };
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the result")?;
    Ok(outcome.exit())
}

impl Outcome {
    fn exit(&self) -> Exit {
        let skipped = self.traces.as_ref().is_some_and(|traces| traces.skipped.any());
        match skipped
            || !self.config.unread.is_empty()
            || !self.refused.is_empty()
            || self.graphs.skipped() > 0
        {
            true => Exit::Incomplete,
            false => Exit::Done,
        }
    }

    /// All that could not be read.
    fn unread(&self) -> Vec<String> {
        let mut unread: Vec<String> = self.config.unread.iter().map(ToString::to_string).collect();
        unread.extend(self.refused.iter().cloned());
        let warnings = self.traces.iter().flat_map(|traces| &traces.warnings);
        unread.extend(warnings.map(ToString::to_string));
        unread.extend(self.graphs.complaints());
        unread
    }
}
