//! A PromQL store as the source of evidence: Prometheus, Thanos, Mimir or VictoriaMetrics, which
//! scrape the agents, are durable and replicated, and are there already where a mesh is large.
//!
//! Each minute what rose in it is read back, a page of callers at a time, and becomes one report of
//! each caller, numbered by the minute: whoever reads a minute twice counts it once, and a minute
//! that could not be read is read later. `increase` comes before `sum`: a sum over processes falls
//! when one of them restarts, and a store takes that for a counter that starts anew.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use onus_api::{
    EdgeCounts, EdgeDelta, EdgePolicyFacts, ProcedureCounts, ProcedureDelta, Report,
    SCHEMA_VERSION, ServiceFacts,
};
use onus_promql::{AskError, Client, Limits, Sample};

use crate::access::token_in;
use crate::clock::Millis;
use crate::config::PromqlConfig;
use crate::shard::Shard;

/// The process in whose name minutes are counted.
pub(crate) const INSTANCE: &str = "promql";
/// Callers of one query: a few thousand series.
const PAGE: usize = 50;
/// How far back is read after a break.
pub(crate) const BACK_MAX: u64 = 60;
/// A minute is read again later, so that none is waited for as long as by people.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_secs(30), bytes: 64 << 20 };

/// A store that is read.
pub(crate) struct Source {
    client: Client,
    config: PromqlConfig,
    minute: Duration,
    shard: Option<Shard>,
}

impl Source {
    pub(crate) fn new(config: PromqlConfig, minute: Duration, shard: Option<Shard>) -> Self {
        let client = Client::new(config.endpoint.clone(), LIMITS);
        Self { client, config, minute, shard }
    }

    /// The number of the last minute that is in the store as a whole.
    pub(crate) fn last(&self, now: Millis) -> u64 {
        let delayed = Duration::from_millis(now.0).saturating_sub(self.config.delay);
        delayed.as_millis() as u64 / self.minute_millis()
    }

    fn minute_millis(&self) -> u64 {
        u64::try_from(self.minute.as_millis()).unwrap_or(u64::MAX).max(1)
    }

    /// What rose in the minute that ends with this number, as reports of this instance's callers.
    pub(crate) async fn read(&self, number: u64) -> Result<Vec<Report>, String> {
        let end = number * self.minute_millis();
        let callers = self.query("group by (caller) (onus_edge_requests_total)", end).await?;
        let mut callers: Vec<String> =
            callers.iter().map(|series| series.label("caller").to_owned()).collect();
        callers.retain(|caller| {
            !caller.is_empty() && self.shard.as_ref().is_none_or(|shard| shard.owns(caller))
        });
        let mut reports = Vec::new();
        for page in callers.chunks(PAGE) {
            let matching = matching(page);
            let edges = self.query(&self.edges_of(&matching), end).await?;
            let clean = self.query(&self.clean_of(&matching), end).await?;
            reports.extend(page.iter().map(|caller| report(caller, number, end, &edges, &clean)));
        }
        Ok(reports)
    }

    fn edges_of(&self, matching: &str) -> String {
        let by = "caller, caller_method, callee, callee_method, callee_outcome, caller_outcome, isolated";
        if self.config.recorded {
            return format!("onus:edge_requests:increase1m{{caller=~\"{matching}\"}}");
        }
        let window = self.minute_millis();
        format!(
            "sum by ({by}) (increase(onus_edge_requests_total{{caller=~\"{matching}\"}}[{window}ms]))"
        )
    }

    fn clean_of(&self, matching: &str) -> String {
        if self.config.recorded {
            return format!("onus:clean_requests:increase1m{{caller=~\"{matching}\"}}");
        }
        let window = self.minute_millis();
        format!(
            "sum by (caller, caller_method, outcome) (increase(onus_clean_requests_total{{caller=~\"{matching}\"}}[{window}ms]))"
        )
    }

    async fn query(&self, query: &str, end: u64) -> Result<Vec<Sample>, String> {
        let mut client = self.client.clone();
        // The file is read each time: tokens change while the analysis runs.
        if let Some(path) = &self.config.token_file {
            client = client.token(&token_in(path)?).map_err(|error| error.to_string())?;
        }
        let at = format!("{}.{:03}", end / 1000, end % 1000);
        let answer = client.ask(query, Some(&at)).await.map_err(|error| whole(&error))?;
        Ok(answer.samples)
    }
}

/// An error with what is behind it.
fn whole(error: &AskError) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let _ = write!(text, ": {error}");
        behind = error.source();
    }
    text
}

/// What the series say of one caller.
fn report(caller: &str, number: u64, end: u64, edges: &[Sample], clean: &[Sample]) -> Report {
    let mut deltas: BTreeMap<[&str; 3], EdgeCounts> = BTreeMap::new();
    for series in edges.iter().filter(|series| series.label("caller") == caller) {
        let name = ["caller_method", "callee", "callee_method"].map(|label| series.label(label));
        let counts = deltas.entry(name).or_default();
        let count = count(series.value);
        let outcomes = (
            series.label("callee_outcome"),
            series.label("caller_outcome"),
            series.label("isolated"),
        );
        let place = match outcomes {
            ("ok", "ok", _) => &mut counts.ok_caller_ok,
            ("ok", _, _) => &mut counts.ok_caller_failed,
            ("error", "ok", "true") => &mut counts.alone_caller_ok,
            ("error", _, "true") => &mut counts.alone_caller_failed,
            ("error", "ok", _) => &mut counts.jointly_caller_ok,
            (_, _, _) => &mut counts.jointly_caller_failed,
        };
        *place += count;
    }
    let mut procedures: BTreeMap<&str, ProcedureCounts> = BTreeMap::new();
    for series in clean.iter().filter(|series| series.label("caller") == caller) {
        let counts = procedures.entry(series.label("caller_method")).or_default();
        match series.label("outcome") {
            "ok" => counts.clean_ok += count(series.value),
            _ => counts.clean_failed += count(series.value),
        }
    }
    Report {
        schema_version: SCHEMA_VERSION,
        service: caller.to_owned(),
        instance: INSTANCE.to_owned(),
        sequence: number,
        at: end,
        facts: ServiceFacts::default(),
        edges: deltas
            .into_iter()
            .filter(|(_, counts)| !counts.is_zero())
            .map(|([caller_procedure, callee, procedure], counts)| EdgeDelta {
                caller_procedure: caller_procedure.to_owned(),
                callee: callee.to_owned(),
                procedure: procedure.to_owned(),
                policy: EdgePolicyFacts::default(),
                counts,
            })
            .collect(),
        procedures: procedures
            .into_iter()
            .map(|(procedure, counts)| ProcedureDelta { procedure: procedure.to_owned(), counts })
            .collect(),
    }
}

/// Stores guess what rose between two scrapes, so that counts may be broken.
fn count(value: f64) -> u64 {
    if value.is_finite() && value > 0.0 { value.round() as u64 } else { 0 }
}

/// A pattern for these names, as the text of a PromQL string.
fn matching(names: &[String]) -> String {
    let escaped = names.iter().map(|name| {
        let mut text = String::new();
        for character in name.chars() {
            match character {
                // A backslash for the pattern, which is one of two in the string.
                '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => {
                    text.push_str("\\\\");
                    text.push(character);
                }
                '\\' => text.push_str("\\\\\\\\"),
                '"' => text.push_str("\\\""),
                _ => text.push(character),
            }
        }
        text
    });
    escaped.collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_patterns_and_end_no_string() {
        let names = ["shop/cart", "a.b|c", "q\"}", "back\\slash"].map(str::to_owned);
        assert_eq!(matching(&names), "shop/cart|a\\\\.b\\\\|c|q\\\"\\\\}|back\\\\\\\\slash");
    }

    #[test]
    fn counts_of_a_store_are_whole_and_never_negative() {
        for (value, expected) in [(2.4, 2), (2.6, 3), (-1.0, 0), (f64::NAN, 0), (f64::INFINITY, 0)]
        {
            assert_eq!(count(value), expected, "{value}");
        }
    }
}
