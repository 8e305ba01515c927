//! Dumps in, reports out.

mod expected;
mod formats;
mod hostile;
mod story;
mod traps;

use onus_traces::{Format, Import, Limits, Reading, Report};

/// What comes of some files, each with its name, whose format is detected.
fn report_of(files: &[(&str, &[u8])]) -> Report {
    let mut import = Import::new(Limits::default());
    for (name, bytes) in files {
        import.read(name, *bytes, Format::Detect);
    }
    import.report(Reading::default())
}

/// What comes of one file.
fn report(dump: &[u8]) -> Report {
    report_of(&[("dump", dump)])
}

/// Caller, callee, calls, failures, both.
type EdgeRow<'r> = (&'r str, &'r str, u64, u64, u64);

fn edges(report: &Report) -> Vec<EdgeRow<'_>> {
    let row = |edge: &onus_traces::Edge| (edge.calls, edge.failures, edge.both);
    let rows = report.edges.iter().map(|edge| {
        let (calls, failures, both) = row(edge);
        (edge.caller.as_str(), edge.callee.as_str(), calls, failures, both)
    });
    rows.collect()
}

fn warnings(report: &Report) -> Vec<String> {
    report.warnings.iter().map(ToString::to_string).collect()
}
