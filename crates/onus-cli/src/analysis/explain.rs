//! `onus explain CALLER CALLEE`: why edges have the class they have.

use onus_api::EdgeFigures;

use super::edges::all;
use super::{block_on, json, tell};
use crate::cli::{ExplainOptions, Output};
use crate::exit::Refused;

pub(crate) fn run(options: &ExplainOptions) -> anyhow::Result<()> {
    let ExplainOptions { caller, callee, span, server, watch, output } = options;
    super::watch(*watch, *output, || {
        let page = block_on(all(server, Some(caller), Some(callee), span))?;
        if page.edges.is_empty() {
            let when = if span.since.is_some() { " that went wrong then" } else { "" };
            return Err(Refused(format!(
                "{caller} has reported no call of {callee}{when}; `onus edges` shows the calls that are known"
            ))
            .into());
        }
        Ok(match output {
            Output::Table => {
                tell(&page.missing);
                let edges = page.edges.iter();
                edges.map(|edge| text(edge, span.since.is_some())).collect()
            }
            Output::Json => json(&page)?,
        })
    })
}

/// The class is that of all time; the counts may be those of a window.
fn text(edge: &EdgeFigures, windowed: bool) -> String {
    let counts = if windowed { &edge.recent } else { &edge.counts };
    format!(
        "{} {} \u{2192} {} {}\n  class    {}\n  counted  {} requests; the callee failed in {}, alone in {}, and {} of those failed too\n  calls    {} with {} attempts; {} retries suppressed, {} denied by the budget\n",
        edge.caller,
        edge.caller_procedure,
        edge.callee,
        edge.procedure,
        edge.explanation,
        counts.ok_caller_ok + counts.ok_caller_failed + counts.failures(),
        counts.failures(),
        counts.isolated(),
        counts.alone_caller_failed,
        counts.calls(),
        counts.attempts(),
        counts.suppressed,
        counts.budget_denied,
    )
}
