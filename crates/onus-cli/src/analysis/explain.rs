//! `onus explain CALLER CALLEE`: why edges have the class they have.

use std::fmt::Write;

use super::edges::all;
use super::{Client, block_on, json, print};
use crate::cli::{ExplainOptions, Output};
use crate::exit::Refused;

pub(crate) fn run(options: &ExplainOptions) -> anyhow::Result<()> {
    let client = Client::new(&options.server)?;
    let page = block_on(all(&client, Some(&options.caller), Some(&options.callee)))?;
    if page.edges.is_empty() {
        let ExplainOptions { caller, callee, .. } = options;
        return Err(Refused(format!(
            "{caller} has reported no call of {callee}; `onus edges` shows the calls that are known"
        ))
        .into());
    }
    if options.output == Output::Json {
        return print(&json(&page)?);
    }
    let mut text = String::new();
    for edge in &page.edges {
        let counts = &edge.counts;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} {} \u{2192} {} {}\n  class    {}\n  counted  {} requests; the callee failed in {}, alone in {}, and {} of those failed too\n  calls    {} with {} attempts; {} retries suppressed, {} denied by the budget",
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
        );
    }
    print(&text)
}
