//! The agent's counters in Envoy's statistics, so that whoever scrapes Envoy has them.
//!
//! Envoy counts by itself, so it is told what was added since the last time. The counters are those
//! of `docs/metrics.md`, read as any scrape reads them: nothing is counted twice.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use onus_agent::{Agent, Timestamp};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// A family of counters that Envoy is told of.
#[derive(Debug)]
pub struct Family {
    /// Its name, with `_total`.
    pub name: &'static str,
    /// The names of its labels, in order.
    pub labels: &'static [&'static str],
}

/// What an Envoy filter counts with.
pub trait Counters {
    /// Adds to the series of family number `family`, in [`FAMILIES`], with these values of its
    /// labels; adding zero makes a series that is there.
    fn add(&mut self, family: usize, values: &[&str], count: u64);
}

/// What Envoy is told of: the evidence that the analysis reads, and what people look at first.
pub static FAMILIES: &[Family] = &[
    Family {
        name: "onus_edge_requests_total",
        labels: &[
            "caller",
            "caller_method",
            "callee",
            "callee_method",
            "callee_outcome",
            "caller_outcome",
            "isolated",
        ],
    },
    Family { name: "onus_clean_requests_total", labels: &["caller", "caller_method", "outcome"] },
    Family { name: "onus_requests_total", labels: &["service", "method", "outcome", "arm"] },
    Family { name: "onus_claims_total", labels: &["service", "method", "claim", "reason", "arm"] },
    Family {
        name: "onus_calls_total",
        labels: &["caller", "caller_method", "callee", "callee_method", "outcome", "arm"],
    },
    Family {
        name: "onus_retries_not_made_total",
        labels: &["caller", "caller_method", "callee", "callee_method", "reason", "arm"],
    },
    Family {
        name: "onus_untied_calls_total",
        labels: &["caller", "caller_method", "callee", "callee_method"],
    },
    Family { name: "onus_faults_total", labels: &["service"] },
];

/// Families whose series exist from the first use of an edge or procedure on: a database that meets
/// a series at one has not seen it rise. Of the others a series exists once it has counted.
const BORN_AT_ZERO: usize = 2;

/// How often Envoy is told, by the first stream after it.
const INTERVAL: Duration = Duration::from_secs(5);

/// The way of an agent's counters into Envoy's statistics.
pub(crate) struct Export {
    registry: Registry,
    /// When Envoy is to be told next, in nanoseconds of the process.
    due: AtomicU64,
    /// What Envoy has been told of each series. Bounded by the agent's edges and procedures.
    told: Mutex<HashMap<String, u64>>,
}

impl Export {
    pub(crate) fn new(agent: &Arc<Agent>) -> Self {
        let mut registry = Registry::default();
        // None of these counters depends on the time.
        agent.register_metrics(&mut registry, || Timestamp::ZERO);
        Self { registry, due: AtomicU64::new(0), told: Mutex::new(HashMap::new()) }
    }

    /// Tells Envoy what was counted since the last time, if it is time to.
    pub(crate) fn follow(&self, counters: &mut impl Counters, now: Timestamp) {
        if now.as_nanos() < self.due.load(Ordering::Relaxed) {
            return;
        }
        // Another worker is at it.
        let mut told = match self.told.try_lock() {
            Ok(told) => told,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.due.store(now.saturating_add(INTERVAL).as_nanos(), Ordering::Relaxed);
        let mut page = String::new();
        // Writing to a string does not fail.
        if text::encode(&mut page, &self.registry).is_err() {
            return;
        }
        for line in page.lines() {
            tell(line, &mut told, counters);
        }
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").finish_non_exhaustive()
    }
}

/// Tells Envoy of one line of an exposition, if it is of a family that Envoy is told of.
fn tell(line: &str, told: &mut HashMap<String, u64>, counters: &mut impl Counters) {
    let Some((series, count)) = line.rsplit_once(' ') else { return };
    let (name, labels) = series.split_at(series.find('{').unwrap_or(series.len()));
    let Some(family) = FAMILIES.iter().position(|family| family.name == name) else { return };
    let Ok(count) = count.parse::<u64>() else { return };
    let before = told.get(series).copied();
    if before == Some(count) || (before.is_none() && count == 0 && family >= BORN_AT_ZERO) {
        return;
    }
    let values = values(labels);
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    if values.len() == FAMILIES[family].labels.len() {
        counters.add(family, &values, count - before.unwrap_or(0).min(count));
        told.insert(series.to_owned(), count);
    }
}

/// The values in `{name="value",…}`.
fn values(labels: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = labels.chars();
    while rest.any(|c| c == '"') {
        let mut value = String::new();
        while let Some(c) = rest.next().filter(|&c| c != '"') {
            match c {
                '\\' => value.extend(rest.next().map(|c| if c == 'n' { '\n' } else { c })),
                _ => value.push(c),
            }
        }
        values.push(value);
    }
    values
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use onus_agent::{
        AgentConfig, CallError, CallStart, Draw, FailedAttempt, MethodKind, Procedure,
    };

    use super::*;

    #[derive(Default)]
    struct Told(HashMap<(usize, Vec<String>), u64>);

    impl Counters for Told {
        fn add(&mut self, family: usize, values: &[&str], count: u64) {
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            *self.0.entry((family, values)).or_default() += count;
        }
    }

    impl Told {
        fn of(&self, name: &str, values: &[&str]) -> Option<u64> {
            let family = FAMILIES.iter().position(|family| family.name == name).unwrap();
            let values = values.iter().map(|value| (*value).to_owned()).collect();
            self.0.get(&(family, values)).copied()
        }
    }

    fn fails_once(agent: &Arc<Agent>) {
        let start = || Timestamp::ZERO;
        let mut headers = HeaderMap::new();
        let procedure = Procedure::http(agent.symbols(), &http::Method::GET, Some("a \"b\"\\"));
        let inbound = agent.request_arrived(&mut headers, procedure, 1, start);
        let callee = agent.symbols().intern("b");
        let edge = agent.edge(Some(&inbound), callee, Procedure::NONE, start);
        let call = CallStart {
            method: MethodKind::Safe,
            head: 0,
            body: None,
            bits: 1,
            timed_below: false,
        };
        let mut call = agent.call_started(edge, Some(inbound.clone()), call, &headers, start);
        call.attempt_started(&mut headers, start);
        let failed = FailedAttempt {
            error: CallError::Reset,
            headers: None,
            replayable: false,
            body_broke: false,
            wall: std::time::SystemTime::UNIX_EPOCH,
        };
        call.attempt_failed(&failed, Timestamp::ZERO, Draw::from_bits(0));
        inbound.answer(true, false, &mut headers, Timestamp::ZERO);
        inbound.finished(true, Timestamp::ZERO);
    }

    #[test]
    fn envoy_is_told_what_was_added_and_of_evidence_from_zero_on() {
        let agent = Agent::new(&AgentConfig::new("a"), 0, Timestamp::ZERO).unwrap();
        let export = Export::new(&agent);
        let mut told = Told::default();
        let at = |seconds: u64| Timestamp::from_nanos(seconds * 1_000_000_000);
        fails_once(&agent);
        let method = "GET a \"b\"\\";
        let edge = ["a", method, "b", ""];
        let evidence = |outcome: &'static str| [&edge[..], &["error", outcome, "true"]].concat();
        for (now, calls) in [(at(1), 1), (at(2), 1), (at(6), 3), (at(100), 3)] {
            export.follow(&mut told, now);
            let failed = told.of("onus_edge_requests_total", &evidence("error"));
            assert_eq!(failed, Some(calls), "at {now:?}");
            let survived = told.of("onus_edge_requests_total", &evidence("ok"));
            assert_eq!(survived, Some(0), "at {now:?}");
            if now == at(1) {
                fails_once(&agent);
                fails_once(&agent);
            }
        }
        let own = ["a", method, "claimed-silent", "handoff", "observe"];
        let claims: Vec<_> = told.0.keys().filter(|(family, _)| *family == 3).collect();
        assert_eq!(told.of("onus_claims_total", &own), Some(3), "{claims:?}");
        assert_eq!(claims.len(), 1, "{claims:?}");
    }

    #[test]
    fn families_are_those_of_the_agent() {
        let agent = Agent::new(&AgentConfig::new("a"), 0, Timestamp::ZERO).unwrap();
        fails_once(&agent);
        let export = Export::new(&agent);
        let mut page = String::new();
        text::encode(&mut page, &export.registry).unwrap();
        for family in FAMILIES {
            let start = format!("{}{{", family.name);
            let line = page.lines().find(|line| line.starts_with(&start)).expect(family.name);
            let labels = line[start.len()..]
                .split("=\"")
                .filter_map(|part| part.rsplit(['"', ',', '{']).next());
            let labels: Vec<_> = labels.take(family.labels.len()).collect();
            assert_eq!(labels, family.labels, "{line}");
        }
    }
}
