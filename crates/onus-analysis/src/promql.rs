//! A PromQL store as the source of evidence: Prometheus, Thanos, Mimir or VictoriaMetrics, which
//! scrape the agents, are durable and replicated, and are there already where a mesh is large.
//!
//! Each minute what rose in it is read back, a page of callers at a time, and becomes one report of
//! each caller, numbered by the minute: whoever reads a minute twice counts it once, and a minute
//! that could not be read is read later. `increase` comes before `sum`: a sum over processes falls
//! when one of them restarts, and a store takes that for a counter that starts anew.

mod facts;
mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use onus_api::{
    EdgeCounts, EdgeDelta, EdgePolicyFacts, ProcedureCounts, ProcedureDelta, Report, SCHEMA_VERSION,
};
use onus_promql::{AskError, Client, Limits, Sample};
use tokio::task::JoinSet;

use self::facts::Facts;
pub use self::series::{SERIES, Series, Takes};
use crate::access::token_in;
use crate::clock::Millis;
use crate::config::PromqlConfig;
use crate::shard::Shard;

/// The process in whose name minutes are counted.
pub(crate) const INSTANCE: &str = "promql";
/// Callers of one query: a few thousand series.
const PAGE: usize = 50;
/// Queries under way at once; Prometheus works on 20 by default.
const AT_ONCE: usize = 6;
/// How far back is read after a break.
pub(crate) const BACK_MAX: u64 = 60;
/// A minute is read again later, so that none is waited for as long as by people.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_secs(30), bytes: 64 << 20 };

/// A store that is read.
#[derive(Clone)]
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
        let callers = self.callers(end).await?;
        let mut reports = Vec::new();
        for page in callers.chunks(PAGE) {
            let pattern = pattern(page);
            let counts = SERIES.iter().map(|series| {
                let matching = format!("{{{}=~\"{pattern}\"}}", series.of()[0]);
                match self.config.recorded {
                    true => format!("{}{matching}", series.recorded),
                    false => {
                        let window = format!("{}ms", self.minute_millis());
                        series.rose(series.of(), &matching, &window)
                    }
                }
            });
            let facts = facts::QUERIES.iter().enumerate().map(|(place, (recorded, query))| {
                let label = if facts::is_of_services(place) { "service" } else { "caller" };
                let matching = format!("{{{label}=~\"{pattern}\"}}");
                match self.config.recorded {
                    true => format!("{recorded}{matching}"),
                    false => query(&matching),
                }
            });
            let mut answers = self.query_all(counts.chain(facts).collect(), end).await?;
            let mut facts = Facts::default();
            for (place, answer) in answers.split_off(SERIES.len()).iter().enumerate() {
                facts.take(place, answer);
            }
            let answers: Vec<_> = SERIES.iter().zip(answers).collect();
            reports.extend(page.iter().map(|caller| report(caller, number, end, &answers, &facts)));
        }
        Ok(reports)
    }

    /// The services of this instance: those that call, and those that only serve.
    async fn callers(&self, end: u64) -> Result<Vec<String>, String> {
        let mut found = BTreeSet::new();
        for series in SERIES
            .iter()
            .filter(|it| ["onus_edge_requests_total", "onus_requests_total"].contains(&it.metric))
        {
            let name = if self.config.recorded { series.recorded } else { series.metric };
            let label = series.of()[0];
            let answer = self.query(&format!("group by ({label}) ({name})"), end).await?;
            found.extend(answer.iter().map(|it| it.label(label).to_owned()));
        }
        found.retain(|caller| {
            !caller.is_empty() && self.shard.as_ref().is_none_or(|shard| shard.owns(caller))
        });
        Ok(found.into_iter().collect())
    }

    /// The answers to some queries in their order, a few of which are under way at once: a store
    /// takes longer over each than it is kept busy by it.
    async fn query_all(&self, queries: Vec<String>, end: u64) -> Result<Vec<Vec<Sample>>, String> {
        let mut answers = vec![Vec::new(); queries.len()];
        let mut waiting = queries.into_iter().enumerate();
        let mut asked = JoinSet::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some((place, query)) = waiting.next()
            {
                let source = self.clone();
                asked.spawn(async move { (place, source.query(&query, end).await) });
            }
            let Some(answered) = asked.join_next().await else { return Ok(answers) };
            let (place, answer) = answered.map_err(|error| error.to_string())?;
            answers[place] = answer?;
        }
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
fn report(
    caller: &str,
    number: u64,
    end: u64,
    answers: &[(&Series, Vec<Sample>)],
    facts: &Facts,
) -> Report {
    let mut deltas: BTreeMap<[&str; 4], EdgeCounts> = BTreeMap::new();
    let mut procedures: BTreeMap<&str, ProcedureCounts> = BTreeMap::new();
    for (series, samples) in answers {
        let [service, procedure] = [series.of()[0], series.of()[1]];
        for sample in samples.iter().filter(|sample| sample.label(service) == caller) {
            let count = series::count(sample.value);
            match series.takes {
                Takes::Edge(take) => {
                    let name = ["caller", "caller_method", "callee", "callee_method"];
                    let name = name.map(|label| sample.label(label));
                    take(deltas.entry(name).or_default(), sample, count);
                }
                Takes::Procedure(_, take) => {
                    take(procedures.entry(sample.label(procedure)).or_default(), sample, count);
                }
            }
        }
    }
    let unknown = EdgePolicyFacts { unknown: true, ..EdgePolicyFacts::default() };
    Report {
        schema_version: SCHEMA_VERSION,
        service: caller.to_owned(),
        instance: INSTANCE.to_owned(),
        sequence: number,
        at: end,
        facts: facts.services.get(caller).cloned().unwrap_or_default(),
        edges: deltas
            .into_iter()
            .filter(|(_, counts)| !counts.is_zero())
            .map(|(name, counts)| EdgeDelta {
                caller_procedure: name[1].to_owned(),
                callee: name[2].to_owned(),
                procedure: name[3].to_owned(),
                policy: facts.edges.get(&name.map(str::to_owned)).copied().unwrap_or(unknown),
                counts,
            })
            .collect(),
        procedures: procedures
            .into_iter()
            .filter(|(_, counts)| !counts.is_zero())
            .map(|(procedure, counts)| ProcedureDelta { procedure: procedure.to_owned(), counts })
            .collect(),
    }
}

/// A pattern for these names, as the text of a PromQL string.
fn pattern(names: &[String]) -> String {
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
        assert_eq!(pattern(&names), "shop/cart|a\\\\.b\\\\|c|q\\\"\\\\}|back\\\\\\\\slash");
    }
}
