//! Dumps of others, and what an independent script counted in them, cell by cell.

mod shared;

use onus_traces::{Format, Import, Limits, Reading, Report};

use shared::{Row, Shared};

/// Errors count as the script counted them: also those of a status 404.
const ALL_ERRORS: Reading = Reading { client_errors: true };

fn read(data: &Shared, format: Format) -> Report {
    let mut import = Import::new(Limits::default());
    for (name, bytes) in data.dumps() {
        import.read(&name, &bytes[..], format);
    }
    import.report(ALL_ERRORS)
}

fn check(data: &Shared, report: &Report) {
    check_edges(data, report);
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

#[test]
fn uber_crisp_testcases() {
    let Some(data) = Shared::open("uber-crisp-testcases") else { return };
    check(&data, &read(&data, Format::Detect));
}

#[test]
fn traceweaver_dsb_hotel() {
    let Some(data) = Shared::open("traceweaver-dsb-hotel") else { return };
    check(&data, &read(&data, Format::Detect));
}

#[test]
fn zipkin_lens() {
    let Some(data) = Shared::open("zipkin-lens") else { return };
    check(&data, &read(&data, Format::Detect));
}

#[test]
fn holmesgpt_otlp() {
    let Some(data) = Shared::open("holmesgpt-otlp") else { return };
    check(&data, &read(&data, Format::Detect));
}
