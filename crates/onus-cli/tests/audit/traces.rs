//! Traces of the example mesh, as Jaeger's API answers.

use std::fmt::Write;

/// Traces in which `catalog` and `mail` take nobody down, and `payments` takes down all above it.
pub(super) fn dump() -> String {
    let mut traces = Vec::new();
    for _ in 0..20 {
        traces.push(trace(traces.len(), &[("web", false), ("catalog", true)]));
        traces.push(trace(traces.len(), &[("web", false), ("checkout", false), ("mail", true)]));
        let down = [("web", true), ("checkout", true), ("payments", true)];
        traces.push(trace(traces.len(), &down));
        // Most requests go well.
        for _ in 0..5 {
            traces.push(trace(traces.len(), &[("web", false), ("checkout", false)]));
        }
    }
    format!("{{\"data\": [{}]}}", traces.join(","))
}

/// One chain of calls: services, and whether they fail.
fn trace(number: usize, chain: &[(&str, bool)]) -> String {
    let id = format!("4bf92f3577b34da6{number:016x}");
    let mut spans = String::new();
    let mut processes = String::new();
    for (depth, (service, failed)) in chain.iter().enumerate() {
        let comma = if depth == 0 { "" } else { "," };
        // A span whose id is zero has none.
        let span = depth + 1;
        let parent = match depth {
            0 => String::new(),
            above => format!(r#"{{"refType": "CHILD_OF", "spanID": "{above}"}}"#),
        };
        let tags = if *failed { r#"{"key": "error", "value": true}"# } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(
            spans,
            r#"{comma}{{"traceID": "{id}", "spanID": "{span}", "processID": "p{depth}",
               "startTime": {}, "references": [{parent}], "tags": [{tags}]}}"#,
            1_796_036_400_000_000_u64 + number as u64 * 1_000_000,
        );
        let _ = write!(processes, r#"{comma}"p{depth}": {{"serviceName": "{service}"}}"#);
    }
    format!(r#"{{"traceID": "{id}", "spans": [{spans}], "processes": {{{processes}}}}}"#)
}
