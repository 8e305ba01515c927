//! A dump of traces, as large as wanted, and plain deserialisation to compare its import with.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use onus_traces::{Format, Import, Limits, Reading};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Imports a dump of Jaeger and counts what it shows; the number of its spans.
#[must_use]
pub fn import(dump: &[u8]) -> u64 {
    let mut import = Import::new(Limits::default());
    import.read("dump", dump, Format::Detect);
    import.report(Reading::default()).summary.spans
}

/// Deserialises a dump of Jaeger into borrowed structs; the number of its spans.
///
/// # Errors
///
/// If it is none.
pub fn deserialise(dump: &[u8]) -> serde_json::Result<u64> {
    let traces: Traces<'_> = serde_json::from_slice(dump)?;
    Ok(traces.data.iter().map(|trace| trace.spans.len() as u64).sum())
}

/// Writes traces of twenty spans over eight services, each span as Jaeger writes those of a Go service.
pub fn write(spans: u64, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{\"data\":[")?;
    for trace in 0..spans / 20 {
        let id = (trace + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let comma = if trace == 0 { "" } else { "," };
        write!(out, "{comma}{{\"traceID\":\"{id:016x}{id:016x}\",\"spans\":[")?;
        for span in 0..20_u64 {
            let service = (span / 2 + span % 2 * (trace % 3)) % 8;
            let comma = if span == 0 { "" } else { "," };
            write!(
                out,
                "{comma}{{\"traceID\":\"{id:016x}{id:016x}\",\"spanID\":\"{:016x}\",\"flags\":1,\
                 \"operationName\":\"/shop.Service{service}/Get\",\"references\":[",
                id ^ (span + 1)
            )?;
            if span > 0 {
                let parent = id ^ (span / 2 + 1);
                write!(
                    out,
                    "{{\"refType\":\"CHILD_OF\",\"traceID\":\"{id:016x}{id:016x}\",\
                     \"spanID\":\"{parent:016x}\"}}"
                )?;
            }
            let start = 1_796_000_000_000_000 + trace * 1_000 + span;
            let kind = if span % 2 == 0 { "server" } else { "client" };
            write!(
                out,
                "],\"startTime\":{start},\"duration\":4238,\"tags\":[\
                 {{\"key\":\"span.kind\",\"type\":\"string\",\"value\":\"{kind}\"}},\
                 {{\"key\":\"component\",\"type\":\"string\",\"value\":\"gRPC\"}},\
                 {{\"key\":\"rpc.method\",\"type\":\"string\",\"value\":\"Get\"}},\
                 {{\"key\":\"error\",\"type\":\"bool\",\"value\":{}}},\
                 {{\"key\":\"internal.span.format\",\"type\":\"string\",\"value\":\"otlp\"}}],\
                 \"logs\":[],\"processID\":\"p{service}\",\"warnings\":null}}",
                trace % 50 == 0 && span > 10
            )?;
        }
        write!(out, "],\"processes\":{{")?;
        for service in 0..8 {
            let comma = if service == 0 { "" } else { "," };
            write!(
                out,
                "{comma}\"p{service}\":{{\"serviceName\":\"service-{service}\",\"tags\":[\
                 {{\"key\":\"host.name\",\"type\":\"string\",\"value\":\"node-{service}\"}}]}}"
            )?;
        }
        write!(out, "}},\"warnings\":null}}")?;
    }
    writeln!(out, "],\"total\":0,\"limit\":0,\"offset\":0,\"errors\":null}}")?;
    out.flush()
}

/// What the import needs of a dump, and nothing else.
#[derive(Deserialize)]
struct Traces<'d> {
    #[serde(borrow)]
    data: Vec<Trace<'d>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be filled")]
struct Trace<'d> {
    #[serde(borrow)]
    spans: Vec<Span<'d>>,
    #[serde(borrow)]
    processes: HashMap<&'d str, Process<'d>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "they are there to be filled")]
struct Process<'d> {
    #[serde(borrow)]
    service_name: Cow<'d, str>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be filled")]
struct Span<'d> {
    #[serde(rename = "traceID")]
    trace_id: &'d str,
    #[serde(rename = "spanID")]
    span_id: &'d str,
    #[serde(borrow)]
    references: Vec<Reference<'d>>,
    #[serde(rename = "startTime")]
    start_time: u64,
    #[serde(rename = "processID")]
    process_id: &'d str,
    #[serde(borrow)]
    tags: Vec<Tag<'d>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be filled")]
struct Reference<'d> {
    #[serde(rename = "refType")]
    ref_type: &'d str,
    #[serde(rename = "spanID")]
    span_id: &'d str,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "they are there to be filled")]
struct Tag<'d> {
    key: &'d str,
    /// Passed over, so that the comparison is to the most that deserialisation can do.
    value: IgnoredAny,
}
