//! Everything, for tools.

use std::collections::BTreeMap;

use onus_graph::Refused;
use onus_traces::{Claims, Edge, Histogram, Report, Warning};
use serde::Serialize;

use crate::graphs::Graphs;
use crate::radius::{self, Radius, RadiusEntry};

#[derive(Serialize)]
struct Document<'r> {
    schema_version: u32,
    summary: Summary,
    edges: Vec<EdgeEntry<'r>>,
    claims: Vec<ClaimsEntry<'r>>,
    depth: Depth,
    amplification: Vec<Amplification>,
    /// None without any edge between two services.
    radius: Option<RadiusEntry<'r>>,
    skipped: BTreeMap<&'static str, u64>,
    warnings: Vec<WarningEntry<'r>>,
}

#[derive(Serialize)]
struct Summary {
    traces: u64,
    traces_with_error: u64,
    spans: u64,
    merged_records: u64,
    error_spans: u64,
    orphan_spans: u64,
    services: u64,
    requests: u64,
    failed_requests: u64,
    roots: u64,
    failed_roots: u64,
    calls_without_peer_name: u64,
    edges: u64,
}

#[derive(Serialize)]
struct EdgeEntry<'r> {
    caller: &'r str,
    callee: &'r str,
    callee_is_remote: bool,
    calls: u64,
    failures: u64,
    failures_at_callee: u64,
    failures_at_caller: u64,
    both: u64,
    p: Option<f64>,
    raw_class: &'static str,
    requests: u64,
    requests_with_failure: u64,
    requests_both: u64,
    p_per_request: Option<f64>,
    raw_class_per_request: &'static str,
    class: &'static str,
    rule: &'static str,
    k: f64,
    n: f64,
    attempts: Option<u32>,
    low: Option<f64>,
    high: Option<f64>,
    caller_reports_errors: bool,
}

#[derive(Serialize)]
struct ClaimsEntry<'r> {
    service: &'r str,
    failed_requests: u64,
    claim: u64,
    unclaim: u64,
    claim_if_databases_untracked: u64,
    unclaim_if_databases_untracked: u64,
}

#[derive(Serialize)]
struct Depth {
    requests: Histogram,
    traces: Histogram,
    hops: Histogram,
    trace_hops: Histogram,
    error_chains: Histogram,
    calls_per_request: Histogram,
}

#[derive(Serialize)]
struct Amplification {
    chain: u64,
    requests: u64,
    every_hop_2_tries: f64,
    every_hop_3_tries: f64,
    every_hop_budget_10pct: f64,
    owner_only_2_tries: f64,
    owner_only_3_tries: f64,
    owner_only_budget_10pct: f64,
}

#[derive(Serialize)]
struct WarningEntry<'r> {
    file: Option<&'r str>,
    byte: Option<u64>,
    text: String,
    more: u64,
    skips: bool,
}

/// One JSON document, with a line break at its end.
pub(crate) fn render(
    report: &Report,
    radius: Option<&Radius>,
    graphs: &Graphs,
) -> serde_json::Result<String> {
    let edges_of_graphs = ("edges_of_graphs", graphs.skipped());
    let warnings = report.warnings.iter().map(warning).chain(graphs.refused.iter().map(refused));
    let document = Document {
        schema_version: 1,
        summary: summary(report),
        edges: report.edges.iter().map(edge).collect(),
        claims: report.claims.iter().map(claims).collect(),
        depth: depth(report),
        amplification: amplification(report),
        radius: radius.map(radius::entry),
        skipped: report.skipped.counts().into_iter().chain([edges_of_graphs]).collect(),
        warnings: warnings.collect(),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn summary(report: &Report) -> Summary {
    let summary = &report.summary;
    Summary {
        traces: summary.traces,
        traces_with_error: summary.traces_with_error,
        spans: summary.spans,
        merged_records: summary.merged,
        error_spans: summary.error_spans,
        orphan_spans: summary.orphans,
        services: summary.services,
        requests: summary.requests,
        failed_requests: summary.failed_requests,
        roots: summary.roots,
        failed_roots: summary.failed_roots,
        calls_without_peer_name: summary.unnamed_calls,
        edges: summary.edges,
    }
}

fn edge(edge: &Edge) -> EdgeEntry<'_> {
    let (low, high) = edge.interval().unzip();
    EdgeEntry {
        caller: &edge.caller,
        callee: &edge.callee,
        callee_is_remote: edge.remote,
        calls: edge.calls,
        failures: edge.failures,
        failures_at_callee: edge.failures_at_callee,
        failures_at_caller: edge.failures_at_caller,
        both: edge.both,
        p: edge.p(),
        raw_class: edge.raw_class().as_str(),
        requests: edge.requests,
        requests_with_failure: edge.requests_with_failure,
        requests_both: edge.requests_both,
        p_per_request: edge.p_per_request(),
        raw_class_per_request: edge.raw_class_per_request().as_str(),
        class: edge.class().as_str(),
        rule: edge.measured.rule().as_str(),
        k: edge.measured.k,
        n: edge.measured.n,
        attempts: edge.attempts,
        low,
        high,
        caller_reports_errors: !edge.mute,
    }
}

fn claims(claims: &Claims) -> ClaimsEntry<'_> {
    ClaimsEntry {
        service: &claims.service,
        failed_requests: claims.failed,
        claim: claims.claimed,
        unclaim: claims.unclaimed,
        claim_if_databases_untracked: claims.claimed_if_databases_untracked,
        unclaim_if_databases_untracked: claims.unclaimed_if_databases_untracked,
    }
}

fn depth(report: &Report) -> Depth {
    let depths = report.depths.clone();
    Depth {
        requests: depths.requests,
        traces: depths.traces,
        hops: depths.hops,
        trace_hops: depths.trace_hops,
        error_chains: depths.error_chains,
        calls_per_request: depths.calls,
    }
}

fn amplification(report: &Report) -> Vec<Amplification> {
    let row = |row: onus_traces::Amplification| Amplification {
        chain: row.chain,
        requests: row.requests,
        every_hop_2_tries: row.every_hop(2.0),
        every_hop_3_tries: row.every_hop(3.0),
        every_hop_budget_10pct: row.every_hop(1.1),
        owner_only_2_tries: row.owner_only(2.0),
        owner_only_3_tries: row.owner_only(3.0),
        owner_only_budget_10pct: row.owner_only(1.1),
    };
    report.depths.amplification().into_iter().map(row).collect()
}

fn warning(warning: &Warning) -> WarningEntry<'_> {
    WarningEntry {
        file: warning.file.as_deref(),
        byte: warning.at,
        text: warning.trouble.to_string(),
        more: warning.more,
        skips: warning.trouble.skips(),
    }
}

fn refused((file, refused, more): &(String, Refused, u64)) -> WarningEntry<'_> {
    WarningEntry {
        file: Some(file),
        byte: None,
        text: refused.to_string(),
        more: *more,
        skips: true,
    }
}
