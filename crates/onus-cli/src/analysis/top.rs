//! `onus top`: what calls come to, effective against actual.

use std::cmp::Reverse;

use onus_api::{EdgeFigures, EdgePage};

use super::edges::all;
use super::{block_on, json, nothing, tell};
use crate::cli::{Output, TopOptions};
use crate::table;

pub(crate) fn run(options: &TopOptions) -> anyhow::Result<()> {
    let TopOptions { caller, callee, limit, watch, span, server, output } = options;
    super::watch(*watch, *output, || {
        let mut page = block_on(all(server, caller.as_deref(), callee.as_deref(), span))?;
        page.edges.sort_by_key(|edge| Reverse(trouble(edge)));
        page.edges.truncate(*limit);
        Ok(match output {
            Output::Table => {
                tell(&page.missing);
                if page.edges.is_empty() {
                    nothing(if span.since.is_some() {
                        "no such call went wrong in that time"
                    } else {
                        "no such calls are known"
                    });
                }
                render(&page)
            }
            Output::Json => json(&page)?,
        })
    })
}

/// Failures first, then load.
fn trouble(edge: &EdgeFigures) -> (u64, u64) {
    (edge.recent.calls_failed, edge.recent.attempts())
}

fn render(page: &EdgePage) -> String {
    let header = [
        "EDGE",
        "METHOD",
        ">EFFECTIVE",
        ">ACTUAL",
        ">SUCCESS",
        ">RETRIED",
        ">SUPPRESSED",
        ">BUDGET LEFT",
        "CLAIMS(own/dep/missing)",
    ];
    let rows = page.edges.iter().map(|edge| {
        let recent = &edge.recent;
        let rate = |count: u64| format!("{:.1}/s", count as f64 / edge.recent_seconds.max(1.0));
        let ended = recent.calls_ok + recent.calls_failed;
        let success = match ended {
            0 => "-".to_owned(),
            _ => format!("{:.1}%", 100.0 * recent.calls_ok as f64 / ended as f64),
        };
        let budget = edge.policy.budget_balance.map_or_else(|| "-".to_owned(), |it| it.to_string());
        [
            format!("{}\u{2192}{}", edge.caller, edge.callee),
            edge.procedure.clone(),
            rate(recent.calls()),
            rate(recent.attempts()),
            success,
            rate(recent.retries),
            rate(recent.suppressed),
            budget,
            format!(
                "{}/{}/{}",
                recent.retries_claimed,
                recent.suppressed + recent.retries_unclaimed,
                recent.retries_missing
            ),
        ]
    });
    table::render(header, rows)
}
