//! `onus check`: whether a service, or an edge, may be enforced, and which evidence is missing.

use std::collections::BTreeMap;

use onus_api::{EdgeCounts, EdgeFigures, EdgePage, SCHEMA_VERSION};
use onus_learn::{Z90, wilson};
use serde::Serialize;

use crate::analysis::{UNREACHED, all_edges, block_on, json, print, tell};
use crate::cli::{CheckOptions, Output, Span};
use crate::exit::{Exit, Refused};
use crate::table;

/// At least this share of a service's calls must be tied to its requests.
const CORRELATED: f64 = 0.95;
/// At most this share of the suppressed retries may have been of use.
const FALSE_SUPPRESSION: f64 = 0.05;

/// One thing that must be so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    /// Its name, for `--accept`.
    evidence: &'static str,
    /// Of which service or edge.
    subject: String,
    ok: bool,
    /// What was found.
    found: String,
}

#[derive(Serialize)]
struct Document {
    schema_version: u32,
    ready: bool,
    findings: Vec<Finding>,
    /// What is not in the figures that were judged.
    missing: Vec<String>,
}

pub(crate) fn run(options: &CheckOptions) -> anyhow::Result<Exit> {
    let mut ends = options.ready.as_deref().unwrap_or_default().splitn(2, "->");
    let caller = ends.next().map(str::trim).filter(|name| !name.is_empty());
    let callee = ends.next().map(str::trim);
    let page = block_on(all_edges(&options.server, caller, callee, &Span::default()))?;
    if page.edges.is_empty() {
        let what = options.ready.as_deref().unwrap_or("any service");
        tell(&page.missing);
        return Err(Refused(format!(
            "no call of {what} is known; `onus edges` shows those that are"
        ))
        .into());
    }
    let mut findings = findings(&page.edges);
    findings.extend(callers(&page));
    if options.output == Output::Table {
        tell(&page.missing);
    }
    let missing: Vec<_> = findings
        .iter()
        .filter(|it| !it.ok && !options.accept.iter().any(|accepted| accepted == it.evidence))
        .cloned()
        .collect();
    print(&match options.output {
        Output::Table => render(&findings),
        Output::Json => json(&Document {
            schema_version: SCHEMA_VERSION,
            ready: missing.is_empty(),
            findings,
            missing: page.missing,
        })?,
    })?;
    if missing.is_empty() {
        return Ok(Exit::Done);
    }
    let missing = missing.iter().map(|it| format!("{} of {}", it.evidence, it.subject));
    anstream::eprintln!("missing: {}", missing.collect::<Vec<_>>().join(", "));
    Ok(Exit::Incomplete)
}

/// What must be so before these edges are enforced.
fn findings(edges: &[EdgeFigures]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut callers: BTreeMap<&str, EdgeCounts> = BTreeMap::new();
    for edge in edges {
        let counts = callers.entry(&edge.caller).or_default();
        *counts = counts.plus(edge.counts);
    }
    for (caller, counts) in callers {
        findings.push(correlation(caller, &counts));
        findings.push(false_suppression(caller, &counts));
    }
    for edge in edges {
        let subject = format!("{} \u{2192} {} {}", edge.caller, edge.callee, edge.procedure);
        findings.extend(of_edge(edge, &subject));
    }
    findings
}

/// Analyses that did not answer may have calls of which nothing is known here.
fn callers(page: &EdgePage) -> Vec<Finding> {
    let unreached = page.missing.iter().filter_map(|it| it.strip_prefix(UNREACHED));
    unreached
        .map(|address| Finding {
            evidence: "callers",
            subject: "the mesh".to_owned(),
            ok: false,
            found: format!("nothing is known of the callers of the analysis at{address}"),
        })
        .collect()
}

fn correlation(caller: &str, counts: &EdgeCounts) -> Finding {
    let calls = counts.calls();
    let tied = 1.0 - counts.untied as f64 / calls.max(1) as f64;
    Finding {
        evidence: "correlation",
        subject: caller.to_owned(),
        ok: calls > 0 && tied >= CORRELATED,
        found: format!(
            "{:.1} % of {calls} calls are tied to their requests; needed is {:.0} %",
            100.0 * tied,
            100.0 * CORRELATED
        ),
    }
}

fn false_suppression(caller: &str, counts: &EdgeCounts) -> Finding {
    let (succeeded, tried) = counts.false_suppressions();
    let (_, high) = wilson(succeeded as f64, tried as f64, Z90);
    let found = match tried {
        0 => "no retry of an unclaimed error was seen: wait for one, or break something on purpose"
            .to_owned(),
        _ => format!(
            "{succeeded} of {tried} retries of unclaimed errors succeeded, at most {:.1} %; allowed is {:.0} %",
            100.0 * high,
            100.0 * FALSE_SUPPRESSION
        ),
    };
    Finding {
        evidence: "false-suppression",
        subject: caller.to_owned(),
        ok: tried > 0 && high <= FALSE_SUPPRESSION,
        found,
    }
}

fn of_edge(edge: &EdgeFigures, subject: &str) -> Vec<Finding> {
    let policy = &edge.policy;
    let finding =
        |evidence, ok, found: String| Finding { evidence, subject: subject.to_owned(), ok, found };
    let mut findings = Vec::new();
    if policy.unknown {
        let found = "the retry policy is not known: let the agents report, or have the store scrape onus_retry_policy_info";
        findings.push(finding("policy", false, found.to_owned()));
    }
    if policy.foreign_retries {
        let ok = policy.declared_attempts >= 2;
        let found = if ok {
            "a layer below retries, as declared"
        } else {
            "a layer below retries that nobody declared: declare it, or turn it off"
        };
        findings.push(finding("foreign-retries", ok, found.to_owned()));
    }
    if edge.counts.failures() > 0 {
        let ok = edge.class != onus_api::Class::Unknown;
        findings.push(finding("class", ok, edge.explanation.clone()));
    }
    if policy.attempts >= 2 && policy.unsafe_methods && may_be_unsafe(&edge.procedure) {
        let found =
            "a method that is not idempotent may be retried: see that the callee takes it twice"
                .to_owned();
        findings.push(finding("unsafe-methods", false, found));
    }
    if let (Some(percent), true) = (policy.budget_percent, policy.attempts >= 2) {
        // Each process has a budget of its own, and a part of the calls.
        let processes = edge.processes.max(1);
        let rate = edge.recent.calls() as f64 / edge.recent_seconds.max(1.0) / processes as f64;
        let floor = f64::from(policy.budget_min_per_second);
        let share = if floor == 0.0 { 0.0 } else { 100.0 * floor / rate };
        // Without calls nothing is known of the rate, and nothing is retried either.
        let ok = rate == 0.0 || share <= f64::from(percent);
        findings.push(finding("floor", ok, format!(
            "the floor of {floor} retries a second is {share:.0} % of {rate:.1} calls a second, in each of {processes} processes; the budget is {percent} %"
        )));
    }
    findings
}

/// Whether the procedure's method is one that changes something, or is not known.
fn may_be_unsafe(procedure: &str) -> bool {
    let safe = ["GET", "HEAD", "OPTIONS", "TRACE"];
    !procedure.starts_with('/') && !safe.contains(&procedure.split(' ').next().unwrap_or_default())
}

fn render(findings: &[Finding]) -> String {
    table::render(
        ["", "EVIDENCE", "OF", "FOUND"],
        findings.iter().map(|it| {
            let mark = if it.ok { "ok" } else { "missing" };
            [mark.to_owned(), it.evidence.to_owned(), it.subject.clone(), it.found.clone()]
        }),
    )
}

#[cfg(test)]
mod tests {
    use onus_api::{Class, EdgePolicyFacts, Evidence};

    use super::*;

    fn edge(procedure: &str) -> EdgeFigures {
        let counts = EdgeCounts {
            calls_ok: 1_000,
            alone_caller_failed: 20,
            retries_unclaimed: 200,
            ..EdgeCounts::default()
        };
        EdgeFigures {
            caller: "checkout".to_owned(),
            caller_procedure: "GET /".to_owned(),
            callee: "payments".to_owned(),
            procedure: procedure.to_owned(),
            counts,
            recent: EdgeCounts { calls_ok: 2_000, ..EdgeCounts::default() },
            recent_seconds: 10.0,
            processes: 2,
            policy: EdgePolicyFacts {
                attempts: 2,
                budget_percent: Some(10),
                budget_min_per_second: 1,
                ..EdgePolicyFacts::default()
            },
            class: Class::FailClose,
            by: "learned".to_owned(),
            measured: "fail-close".to_owned(),
            evidence: Evidence::default(),
            ratio: None,
            interval: (0.0, 1.0),
            held_seconds: 0,
            explanation: "fail-close".to_owned(),
        }
    }

    fn missing(edge: EdgeFigures) -> Vec<&'static str> {
        let all = findings(&[edge]);
        all.iter().filter(|it| !it.ok).map(|it| it.evidence).collect()
    }

    #[test]
    fn each_evidence_that_is_missing_is_named() {
        type Break = fn(&mut EdgeFigures);
        let breaks: [(Break, &[&str]); 10] = [
            (|_| {}, &[]),
            (|it| it.counts.untied = 51, &["correlation"]),
            (|it| it.counts.retries_unclaimed = 0, &["false-suppression"]),
            (|it| it.counts.retries_unclaimed_ok = 10, &["false-suppression"]),
            (|it| it.policy.foreign_retries = true, &["foreign-retries"]),
            (|it| it.class = Class::Unknown, &["class"]),
            (|it| it.policy.unknown = true, &["policy"]),
            (|it| it.policy.unsafe_methods = true, &["unsafe-methods"]),
            (|it| it.recent.calls_ok = 190, &["floor"]),
            (|it| it.processes = 21, &["floor"]),
        ];
        for (number, (broken, expected)) in breaks.into_iter().enumerate() {
            let mut edge = edge("POST /charge");
            broken(&mut edge);
            assert_eq!(missing(edge), expected, "{number}");
        }
        let mut safe = edge("GET /rate");
        safe.policy.unsafe_methods = true;
        assert_eq!(missing(safe), [""; 0], "GET may be sent twice");
        let mut declared = edge("GET /rate");
        declared.policy.foreign_retries = true;
        declared.policy.declared_attempts = 3;
        assert_eq!(missing(declared), [""; 0]);
    }
}
