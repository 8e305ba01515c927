//! Any bytes as a list of failed spans.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_traces::{Format, Import, Limits, Reading};

fuzz_target!(|data: &[u8]| {
    let mut import = Import::new(Limits::default());
    let dump = br#"[{"traceId":"a","id":"b"},{"traceId":"a","id":"c","parentId":"b"}]"#;
    import.read("dump", &dump[..], Format::Detect);
    import.read_failed("list", data);
    let report = import.report(Reading::default());
    assert!(report.summary.error_spans <= 2 && report.summary.spans == 2);
});
