//! Dumps that are broken or made to harm: what can be read is, the rest is told and counted.

use std::io::{self, Read};

use onus_traces::{Format, HISTOGRAM_MAX, Import, Limits, Reading, Report, Skipped};

use crate::story::{self, EDGES, field};
use crate::{edges, report, report_of, warnings};

/// Text, then as much of one byte as wanted, then text: a dump larger than memory.
fn long<'d>(before: &'d str, length: u64, after: &'d str) -> impl Read + 'd {
    before.as_bytes().chain(io::repeat(b'x').take(length)).chain(after.as_bytes())
}

fn read(source: impl Read) -> Report {
    let mut import = Import::new(Limits::default());
    import.read("dump", source, Format::Detect);
    import.report(Reading::default())
}

const SPAN: &str = r#"{"traceId":"4bf92f3577b34da6","id":"a","localEndpoint":{"serviceName":"A"}}"#;

#[test]
fn a_string_of_a_gigabyte_costs_itself() {
    // A part of it, so that the test takes no time; memory knows no difference.
    const LENGTH: u64 = 20_000_000;
    fn check(before: &str, after: &str, spans: u64, lost: u64) {
        let after = format!("{after},{SPAN}]");
        let report = read(long(before, LENGTH, &after));
        assert_eq!(report.summary.spans, spans, "{before}");
        let skipped = Skipped { texts: 1, spans: lost, ..Skipped::default() };
        assert_eq!(report.skipped, skipped, "{before}");
        let place = before.rfind('"').expect("a string begins");
        let told = format!("dump: byte {place}: a text too long to be kept; skipped");
        assert!(warnings(&report).contains(&told), "{:?}", warnings(&report));
    }
    check(r#"[{"traceId":"4bf92f3577b34da7","id":"b","name":""#, r#""}"#, 2, 0);
    check(
        r#"[{"traceId":"4bf92f3577b34da7","id":"b","tags":{"http.status_code":""#,
        r#""}}"#,
        2,
        0,
    );
    check(r#"[{"id":"b","traceId":""#, r#""}"#, 1, 1);
    check(r#"[{"traceId":"4bf92f3577b34da7","id":"b",""#, r#"":1}"#, 2, 0);
}

#[test]
fn what_is_cut_off_keeps_what_came_before() {
    let dump = format!("[{SPAN},{}", &SPAN[..30]);
    let report = report(dump.as_bytes());
    assert_eq!(report.summary.spans, 1);
    // It ends behind a colon: what counts is that a document is not whole.
    let told = format!("dump: byte {}: the input ends in the middle; 0 bytes skipped", dump.len());
    assert_eq!(warnings(&report), [told]);
    assert_eq!(report.skipped, Skipped { documents: 1, ..Skipped::default() });
}

#[test]
fn any_cut_of_any_dump_is_survived() {
    let dumps = [
        story::jaeger(story::plain_reference).into_bytes(),
        format!("[{}]", story::zipkin().join(",")).into_bytes(),
        story::otlp_protobuf(),
    ];
    for dump in dumps {
        let whole = report(&dump).summary.spans;
        let mut last = 0;
        for cut in 1..dump.len() {
            let report = report(&dump[..cut]);
            // More of a dump never shows less; where Jaeger names the services last, all come then.
            assert!((last..=whole).contains(&report.summary.spans), "cut at {cut}");
            last = report.summary.spans;
            let told = report.skipped.any() || last == whole || whole_fields(&dump, cut);
            assert!(told, "cut at {cut}: {:?}", warnings(&report));
        }
        assert!(last > 0);
    }
}

/// Whether a cut of a protobuf is between two resources, where nobody can see that it is one.
fn whole_fields(dump: &[u8], cut: usize) -> bool {
    dump[0] == 0x0a && dump[cut] == 0x0a && report(&dump[cut..]).skipped == Skipped::default()
}

#[test]
fn one_broken_line_costs_a_line() {
    let good = SPAN.replace('\n', "");
    let dump = format!("{good}\n{{\"traceId\":\"4bf92f3577b34da6\",!\n{good}\nnonsense\n{good}\n");
    let report = report(dump.as_bytes());
    assert_eq!((report.summary.spans, report.summary.merged), (1, 2));
    let at = |text: &str| dump.find(text).expect("it is there");
    assert_eq!(
        warnings(&report),
        [
            format!("dump: byte {}: '!' where a key should be; 2 bytes skipped", at("!")),
            format!("dump: byte {}: 'n' where '{{' or '[' should be; 9 bytes skipped", at("non")),
        ]
    );
}

#[test]
fn mixed_files_are_read_each_as_what_it_is() {
    let jaeger = story::jaeger(story::plain_reference);
    let report = report_of(&[
        ("notes.txt", b"dear colleague, here are the traces"),
        ("empty", b""),
        ("other.json", b"{\"kind\": 1, \"items\": []}"),
        ("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("jaeger.json", jaeger.as_bytes()),
        ("broken.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff]),
        ("broken.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff]),
    ]);
    assert_eq!(edges(&report), EDGES);
    let told = warnings(&report);
    for file in ["notes.txt", "empty", "picture", "broken.gz", "broken.zst"] {
        assert!(told.iter().any(|line| line.starts_with(&format!("{file}: byte "))), "{told:?}");
    }
    assert!(report.skipped.any());
}

#[test]
fn parents_in_a_circle_lose_one_parent() {
    let span = |id: u64, parent: u64| {
        format!(
            r#"{{"traceId":"4bf92f3577b34da6","id":"{id:x}","parentId":"{parent:x}",
            "localEndpoint":{{"serviceName":"S{id}"}}}}"#
        )
    };
    let spans = [span(1, 3), span(2, 1), span(3, 2), span(4, 1), span(5, 5)];
    let report = report(format!("[{}]", spans.join(",")).as_bytes());
    assert_eq!((report.summary.spans, report.summary.roots), (5, 2));
    assert_eq!(report.skipped, Skipped { parents: 2, ..Skipped::default() });
    let told = "a span that is its own ancestor; its parent is ignored";
    assert_eq!(warnings(&report).iter().filter(|line| line.ends_with(told)).count(), 2);
    // The edges of the circle that are left.
    assert_eq!(report.edges.len(), 3);
}

#[test]
fn deep_and_wide_traces_take_no_time() {
    // More than a histogram tells apart.
    const SPANS: u64 = 15_000;
    let span = |id: u64, parent: u64| {
        let parent =
            if parent == 0 { String::new() } else { format!(r#""parentId":"{parent:x}","#) };
        let error = r#""tags":{"error":""},"localEndpoint":{"serviceName":"#;
        format!(
            r#"{{"traceId":"4bf92f3577b34da6","id":"{id:x}",{parent}"kind":"SERVER",{error}"S{}"}}}}"#,
            id % 7
        )
    };
    let chain: Vec<_> = (1..=SPANS).map(|id| span(id, id - 1)).collect();
    let deep = report(format!("[{}]", chain.join(",")).as_bytes());
    assert_eq!(deep.depths.requests.keys().next_back(), Some(&HISTOGRAM_MAX));
    assert_eq!(deep.depths.requests[&HISTOGRAM_MAX], SPANS - HISTOGRAM_MAX);
    assert_eq!(deep.depths.error_chains.keys().next_back(), Some(&HISTOGRAM_MAX));
    assert!(deep.depths.amplification()[0].every_hop(3.0).is_infinite());
    let star: Vec<_> = (1..=SPANS).map(|id| span(id, u64::from(id > 1))).collect();
    let wide = report(format!("[{}]", star.join(",")).as_bytes());
    assert_eq!(wide.summary.requests, SPANS);
    // One id for all of them, and everybody is a child of it.
    let one: Vec<_> = (1..=SPANS).map(|id| span(1, 1).replace("S1", &format!("S{id}"))).collect();
    let twins = report(format!("[{}]", one.join(",")).as_bytes());
    assert_eq!(twins.summary.spans, SPANS);
}

#[test]
fn documents_nested_without_end() {
    for text in ["[", "{\"trace\":", "{\"data\":[{\"spans\":[{\"references\":[{\"span\":", "[{"] {
        let report = report(text.repeat(200_000).as_bytes());
        assert_eq!(report.summary.spans, 0);
        assert!(report.skipped.any(), "{text}");
    }
}

#[test]
fn more_services_than_anybody_has() {
    let limits = Limits { spans: 1_000, services: 100 };
    let mut import = Import::new(limits);
    let spans: Vec<_> = (1..=500)
        .map(|id| {
            format!(
                r#"{{"traceId":"4bf92f3577b34da6","id":"{id:x}","kind":"CLIENT",
                "localEndpoint":{{"serviceName":"pod-{id}"}},
                "remoteEndpoint":{{"serviceName":"pod-{}"}}}}"#,
                id % 200
            )
        })
        .collect();
    let dump = format!("[{}]", spans.join(",\n"));
    import.read("dump", dump.as_bytes(), Format::Detect);
    let report = import.report(Reading::default());
    assert_eq!(report.summary.spans + report.skipped.spans, 500);
    assert!(report.summary.services <= 100, "{}", report.summary.services);
    let told = warnings(&report);
    assert!(
        told.iter().any(|line| line.contains(
            "a span of a service after the first 100; skipped; are ids part of the names?"
        )),
        "{told:?}"
    );
    // Some places, and how many more there are.
    assert!(told.iter().any(|line| line.ends_with(" more)")), "{told:?}");
    assert!(told.len() < 12, "{told:?}");
}

#[test]
fn more_spans_than_are_kept() {
    let mut import = Import::new(Limits { spans: 3, services: 100 });
    let dump = story::jaeger(story::plain_reference);
    import.read("dump", dump.as_bytes(), Format::Detect);
    let report = import.report(Reading::default());
    assert_eq!((report.summary.spans, report.skipped.spans), (3, 4));
}

#[test]
fn clocks_that_differ_are_told_and_change_nothing() {
    let at = |start: u64, id: u64, parent: u64, service: &str| {
        format!(
            r#"{{"traceId":"4bf92f3577b34da6","id":"{id:x}","parentId":"{parent:x}",
            "timestamp":{start},"localEndpoint":{{"serviceName":"{service}"}}}}"#
        )
    };
    for (caller, callee, skewed) in
        [(5, 5, false), (5, 4, true), (u64::MAX, 1, true), (0, 1, false), (1, u64::MAX, false)]
    {
        let root = at(caller, 1, 0, "A").replace(r#""parentId":"0","#, "");
        let dump = format!("[{root},{}]", at(callee, 2, 1, "B"));
        let report = report(dump.as_bytes());
        assert_eq!(edges(&report), [("A", "B", 1, 0, 0)]);
        let told = warnings(&report).iter().any(|line| line.contains("clocks differ"));
        assert_eq!(told, skewed, "{caller}, {callee}");
        assert!(!report.skipped.any());
    }
}

#[test]
fn strange_values_cost_their_span_or_nothing() {
    for (span, spans) in [
        (r#"{"traceId":7,"id":"a"}"#, 0),
        (r#"{"traceId":{"x":1},"id":"a"}"#, 0),
        (r#"{"traceId":"4bf92f3577b34da6","id":null}"#, 0),
        (r#"{"traceId":"4bf92f3577b34da6","id":"0000000000000000"}"#, 0),
        (r#"{"traceId":"4bf92f3577b34da6","id":"a","tags":[1],"kind":7,"timestamp":"x"}"#, 1),
        (r#"{"traceId":"4bf92f3577b34da6","id":"a","localEndpoint":[]}"#, 1),
        (r#"{"traceId":"4bf92f3577b34da6","id":"a","parentId":"\ud800","timestamp":-1e99}"#, 1),
    ] {
        let report = report(format!("[{span}]").as_bytes());
        assert_eq!(report.summary.spans, spans, "{span}");
        assert_eq!(report.skipped.spans, 1 - spans, "{span}");
    }
}

#[test]
fn a_broken_message_costs_itself() {
    let good = story::otlp_protobuf();
    // A resource whose span claims to be longer than it is.
    let broken = field(1, &field(2, &field(2, &[0x0a, 0x7f, 1, 2])));
    let report = report(&[&broken[..], &good].concat());
    assert_eq!(edges(&report), EDGES);
    assert_eq!(
        warnings(&report)[0],
        "dump: byte 6: a length beyond the end of its message; 4 bytes skipped"
    );
    assert_eq!(report.skipped, Skipped { documents: 1, bytes: 4, ..Skipped::default() });
}
