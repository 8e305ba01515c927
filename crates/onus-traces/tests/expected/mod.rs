//! Dumps of others, and what an independent script counted in them, cell by cell.

mod shared;

use onus_learn::MeasuredClass;
use onus_traces::{Columns, Edge, Format, Histogram, Import, Limits, Reading, Report, Service};

use shared::{Row, Shared};

/// Errors count as the script counted them: also those of a status 404.
const ALL_ERRORS: Reading = Reading { client_errors: true };

fn read(data: &Shared, reading: Reading) -> Report {
    let mut import = Import::new(Limits::default());
    import.columns(nezha());
    for (name, bytes) in data.dumps() {
        import.read(&name, &bytes[..], Format::Detect);
    }
    if let Some(list) = data.file("error-spans.txt") {
        import.read_failed("error-spans.txt", &list[..]);
    }
    let report = import.report(reading);
    assert!(!report.skipped.any(), "{}", report.skipped);
    report
}

/// The tables of Nezha, which have no column for errors.
fn nezha() -> Columns {
    Columns {
        trace: "TraceID".to_owned(),
        span: "SpanID".to_owned(),
        parent: "ParentID".to_owned(),
        service: Service::Pod("PodName".to_owned()),
        start: Some("StartTimeUnixNano".to_owned()),
        ..Columns::default()
    }
}

/// Compares everything about a dump; what it shows, where the dump is there.
fn check(name: &str) -> Option<Report> {
    let data = Shared::open(name)?;
    let report = read(&data, ALL_ERRORS);
    check_edges(&data, &report);
    check_claims(&data, &report);
    check_depth(&data, &report);
    check_amplification(&data, &report);
    check_summary(&data, &report);
    Some(report)
}

fn edge<'r>(report: &'r Report, caller: &str, callee: &str) -> &'r Edge {
    let found = report.edges.iter().find(|edge| edge.caller == caller && edge.callee == callee);
    found.expect("the edge is in the dump")
}

fn check_edges(data: &Shared, report: &Report) {
    let cell = |p: Option<f64>| p.map_or(String::new(), |p| format!("{p:.4}"));
    let rows: Vec<Row> = report
        .edges
        .iter()
        .map(|edge| {
            vec![
                edge.caller.clone(),
                edge.callee.clone(),
                if edge.remote { "yes" } else { "no" }.to_owned(),
                edge.calls.to_string(),
                edge.failures.to_string(),
                edge.failures_at_callee.to_string(),
                edge.failures_at_caller.to_string(),
                edge.both.to_string(),
                cell(edge.p()),
                edge.raw_class().to_string(),
                edge.requests.to_string(),
                edge.requests_with_failure.to_string(),
                edge.requests_both.to_string(),
                cell(edge.p_per_request()),
                edge.raw_class_per_request().to_string(),
            ]
        })
        .collect();
    data.check("expected-edges.csv", &rows);
}

fn check_claims(data: &Shared, report: &Report) {
    let rows: Vec<Row> = report
        .claims
        .iter()
        .map(|claims| {
            vec![
                claims.service.clone(),
                claims.failed.to_string(),
                claims.claimed.to_string(),
                claims.unclaimed.to_string(),
                claims.claimed_if_databases_untracked.to_string(),
                claims.unclaimed_if_databases_untracked.to_string(),
            ]
        })
        .collect();
    data.check("expected-claims.csv", &rows);
}

fn check_depth(data: &Shared, report: &Report) {
    let depths = &report.depths;
    let mut rows: Vec<Row> = Vec::new();
    for (what, histogram) in [
        ("segment_depth", &depths.requests),
        ("trace_max_depth", &depths.traces),
        ("service_hop_depth", &depths.hops),
        ("trace_max_service_hop_depth", &depths.trace_hops),
        ("error_chain_len", &depths.error_chains),
        ("calls_per_request", &depths.calls),
    ] {
        let row = |(value, count): (&u64, &u64)| {
            vec![what.to_owned(), value.to_string(), count.to_string()]
        };
        rows.extend(histogram.iter().map(row));
    }
    data.check("expected-depth.csv", &rows);
}

fn check_amplification(data: &Shared, report: &Report) {
    let amplification = report.depths.amplification();
    if data.file("expected-amplification.csv").is_none() {
        assert_eq!(amplification, []);
        return;
    }
    let rows: Vec<Row> = amplification
        .iter()
        .map(|row| {
            vec![
                row.chain.to_string(),
                row.requests.to_string(),
                format!("{}", row.every_hop(2.0)),
                format!("{}", row.every_hop(3.0)),
                format!("{:.4}", row.every_hop(1.1)),
                format!("{}", row.owner_only(2.0)),
                format!("{}", row.owner_only(3.0)),
                format!("{:.4}", row.owner_only(1.1)),
            ]
        })
        .collect();
    data.check("expected-amplification.csv", &rows);
}

fn check_summary(data: &Shared, report: &Report) {
    let summary = &report.summary;
    let depths = &report.depths;
    let most = |histogram: &Histogram| histogram.keys().next_back().copied().unwrap_or(0);
    let mean = |histogram: &Histogram| {
        let all: u64 = histogram.values().sum();
        let sum: u64 = histogram.iter().map(|(value, count)| value * count).sum();
        format!("{:.4}", sum as f64 / all as f64)
    };
    let classes = |class: &str| {
        let is = report.edges.iter().filter(|edge| edge.raw_class().as_str() == class);
        is.count().to_string()
    };
    let mut rows = vec![
        ("edges", summary.edges.to_string()),
        ("error_spans", summary.error_spans.to_string()),
        ("failed_root_segments", summary.failed_roots.to_string()),
        ("failed_segments", summary.failed_requests.to_string()),
        ("max_depth", most(&depths.requests).to_string()),
        ("max_service_hop_depth", most(&depths.hops).to_string()),
        ("roots", summary.roots.to_string()),
        ("segments", summary.requests.to_string()),
        ("services", summary.services.to_string()),
        ("spans", summary.spans.to_string()),
        ("traces", summary.traces.to_string()),
        ("traces_with_error", summary.traces_with_error.to_string()),
        ("mean_service_hop_depth", mean(&depths.hops)),
        ("mean_segment_depth", mean(&depths.requests)),
        ("mean_trace_max_depth", mean(&depths.traces)),
        ("edges_fail-close", classes("fail-close")),
        ("edges_fail-open", classes("fail-open")),
        ("edges_unknown", classes("unknown")),
        ("edges_no-data", classes("no-data")),
    ];
    // The script left these out where they are zero.
    let optional = [
        ("calls_without_peer_name", summary.unnamed_calls),
        ("merged_span_records", summary.merged),
        ("orphan_spans", summary.orphans),
    ];
    rows.extend(optional.into_iter().filter(|row| row.1 > 0).map(|(k, v)| (k, v.to_string())));
    let rows: Vec<Row> = rows.into_iter().map(|(key, value)| vec![key.to_owned(), value]).collect();
    data.check("expected-summary.csv", &rows);
}

#[test]
fn holmesgpt_otlp() {
    check("holmesgpt-otlp");
}

#[test]
fn nezha_trainticket() {
    let Some(report) = check("nezha-trainticket") else { return };
    assert!(report.edges.iter().all(|edge| edge.class() == MeasuredClass::NoData));
}

#[test]
fn nezha_trainticket_log_errors() {
    let Some(report) = check("nezha-trainticket-log-errors") else { return };
    // The gateway writes no errors into the log: that it survived is not known, whatever P says.
    let gateway = report.edges.iter().filter(|edge| edge.caller == "ts-gateway-service");
    let failing: Vec<_> = gateway.filter(|edge| edge.failures > 0).collect();
    assert_eq!(failing.len(), 6);
    for edge in failing {
        let classes = (edge.raw_class(), edge.class());
        assert_eq!(classes, (MeasuredClass::FailOpen, MeasuredClass::Unknown), "{}", edge.callee);
    }
}

#[test]
fn traceweaver_dsb_hotel() {
    let Some(report) = check("traceweaver-dsb-hotel") else { return };
    assert!(report.edges.iter().all(|edge| edge.class() == MeasuredClass::NoData));
}

#[test]
fn uber_crisp_testcases() {
    let Some(report) = check("uber-crisp-testcases") else { return };
    // Two of ten are on the border of the raw class, and too few for a proof.
    let border = edge(&report, "S1", "S2");
    assert_eq!((border.both, border.failures), (2, 10));
    let classes = (border.raw_class(), border.class());
    assert_eq!(classes, (MeasuredClass::Unknown, MeasuredClass::Unknown));
}

#[test]
fn zipkin_lens() {
    check("zipkin-lens");
}

#[test]
fn zipkin_lens_without_client_errors() {
    let Some(data) = Shared::open("zipkin-lens") else { return };
    let failing = |reading| -> Vec<String> {
        let report = read(&data, reading);
        report.edges.iter().filter(|it| it.failures > 0).map(|it| it.callee.clone()).collect()
    };
    // One answers 404 and the other 401, and both spans carry an error.
    assert_eq!(failing(ALL_ERRORS), ["alice", "auth"]);
    assert_eq!(failing(Reading::default()), [""; 0]);
}
