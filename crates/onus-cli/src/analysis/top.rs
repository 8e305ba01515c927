//! `onus top`: what calls come to, effective against actual.

use std::cmp::Reverse;
use std::thread;
use std::time::Duration;

use onus_api::{EdgeFigures, EdgePage};

use super::edges::all;
use super::{Client, block_on, json, print};
use crate::cli::{Output, TopOptions};
use crate::table;

const PAUSE: Duration = Duration::from_secs(2);

pub(crate) fn run(options: &TopOptions) -> anyhow::Result<()> {
    let client = Client::new(&options.server)?;
    loop {
        let mut page =
            block_on(all(&client, options.caller.as_deref(), options.callee.as_deref()))?;
        page.edges.sort_by_key(|edge| Reverse(trouble(edge)));
        page.edges.truncate(options.limit);
        let text = match options.output {
            Output::Table => render(&page),
            Output::Json => json(&page)?,
        };
        if !options.watch {
            return print(&text);
        }
        print(&format!("\u{1b}[H\u{1b}[2J{text}"))?;
        thread::park_timeout(PAUSE);
    }
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
        let rate = |count: u64| format!("{:.1}/s", count as f64 / edge.recent_seconds);
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
