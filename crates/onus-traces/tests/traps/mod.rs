//! What dumps of others taught: each trap once by itself, made by hand.

use onus_learn::MeasuredClass;
use onus_traces::{Columns, Format, Import, Limits, Reading, Report, Service};

use crate::{edges, report, report_of, warnings};

/// A span of Zipkin.
fn zipkin(id: u64, parent: u64, service: &str, kind: &str, rest: &str) -> String {
    let parent = if parent == 0 { String::new() } else { format!(r#""parentId":"{parent:x}","#) };
    let kind = if kind.is_empty() { String::new() } else { format!(r#""kind":"{kind}","#) };
    format!(
        r#"{{"traceId":"4bf92f3577b34da6","id":"{id:x}",{parent}{kind}{rest}
        "localEndpoint":{{"serviceName":"{service}"}}}}"#
    )
}

fn list(spans: &[String]) -> Vec<u8> {
    format!("[{}]", spans.join(",")).into_bytes()
}

/// `A` calls `B` once in each of some traces of Jaeger; `errors` says who fails in which.
fn pairs(traces: u64, errors: impl Fn(u64) -> (bool, bool)) -> Vec<u8> {
    let error = |bad: bool| format!(r#"[{{"key":"error","value":{bad}}}]"#);
    let mut text = String::new();
    for trace in 1..=traces {
        let (a, b) = errors(trace);
        text.push_str(&format!(
            r#"{{"traceID":"{trace:032x}","spans":[
            {{"traceID":"{trace:032x}","spanID":"1","processID":"a","tags":{}}},
            {{"traceID":"{trace:032x}","spanID":"2","processID":"b","tags":{},
              "references":[{{"refType":"CHILD_OF","spanID":"1"}}]}}],
            "processes":{{"a":{{"serviceName":"A"}},"b":{{"serviceName":"B"}}}}}}
            "#,
            error(a),
            error(b)
        ));
    }
    text.into_bytes()
}

#[test]
fn client_and_server_share_one_id() {
    // Trap 1. Six records of one id: a client, and a server that was retried or reported twice.
    let server = zipkin(2, 1, "B", "SERVER", r#""shared":true,"#);
    let mut spans = vec![
        zipkin(1, 0, "A", "SERVER", ""),
        zipkin(2, 1, "A", "CLIENT", ""),
        zipkin(2, 1, "B", "", ""),
        zipkin(3, 2, "B", "CLIENT", r#""remoteEndpoint":{"serviceName":"C"},"#),
    ];
    spans.extend(vec![server; 4]);
    let report = report(&list(&spans));
    assert_eq!(edges(&report), [("A", "B", 1, 0, 0), ("B", "C", 1, 0, 0)]);
    assert_eq!((report.summary.spans, report.summary.merged), (4, 4));
    assert_eq!(report.summary.orphans, 0);
}

#[test]
fn an_orphan_is_a_first_request_and_told() {
    // Trap 1.
    let report = report(&list(&[zipkin(5, 9, "A", "SERVER", "")]));
    assert_eq!((report.summary.roots, report.summary.orphans), (1, 1));
    assert_eq!(
        warnings(&report),
        [
            "dump: byte 1: a span whose parent is in no file; its request counts as the first of its \
          trace"
        ]
    );
    assert!(!report.skipped.any());
}

#[test]
fn not_found_is_no_failure_of_the_callee() {
    // Trap 2. [class-2]
    let not_found = r#""tags":{"error":"404","http.status_code":"404"},"#;
    let dump = list(&[
        zipkin(1, 0, "A", "SERVER", ""),
        zipkin(2, 1, "A", "CLIENT", not_found),
        zipkin(2, 1, "B", "SERVER", not_found),
    ]);
    let report = report(&dump);
    assert_eq!(edges(&report), [("A", "B", 1, 0, 0)]);
    assert_eq!(report.claims, []);
    assert!(warnings(&report)[0].starts_with("2 spans have errors that their status"));

    let mut import = Import::new(Limits::default());
    import.read("dump", &dump[..], Format::Detect);
    let report = import.report(Reading { client_errors: true });
    assert_eq!(edges(&report), [("A", "B", 1, 1, 0)]);
}

#[test]
fn a_session_of_a_browser_is_no_depth_of_calls() {
    // Trap 3. Redirects of one service are chained as children, thirty deep; two hops are.
    let mut spans = vec![zipkin(1, 0, "A", "SERVER", "")];
    for id in 2..=30 {
        spans.push(zipkin(id, id - 1, "A", "SERVER", ""));
    }
    spans.push(zipkin(31, 30, "B", "SERVER", ""));
    spans.push(zipkin(32, 31, "C", "SERVER", ""));
    let report = report(&list(&spans));
    assert_eq!(report.depths.requests.keys().next_back(), Some(&31));
    assert_eq!(report.depths.hops.keys().next_back(), Some(&2));
    assert_eq!(report.depths.hops[&0], 30);
}

#[test]
fn edges_without_client_and_server_kinds() {
    // Trap 4. Every span is internal; the callee's spans are children of a span of its caller.
    let report = report(&list(&[
        zipkin(1, 0, "A", "", ""),
        zipkin(2, 1, "A", "", ""),
        zipkin(3, 2, "B", "", ""),
        zipkin(4, 3, "B", "", r#""tags":{"error":"survived"},"#),
    ]));
    assert_eq!(edges(&report), [("A", "B", 1, 0, 0)]);
    assert_eq!(report.summary.requests, 2);
}

#[test]
fn a_dump_that_repeats_itself_counts_once() {
    // Trap 5.
    let dump = pairs(20, |trace| (trace == 1, trace < 9));
    let once = report(&dump);
    let twice = report_of(&[("one", &dump), ("other", &dump)]);
    assert_eq!(once.edges, twice.edges);
    assert_eq!((twice.summary.merged, twice.summary.traces), (40, 20));
}

/// `gateway` calls `stock` in 20 traces of a table, `stock` calls `store`; a list says what failed.
fn listed(failed: impl Fn(u64) -> &'static [u64]) -> Report {
    let (mut table, mut list) = ("t,s,p,svc\n".to_owned(), String::new());
    for trace in 1..=20_u64 {
        for (span, service) in [(1, "gateway"), (2, "stock"), (3, "stock"), (4, "store")] {
            let parent = if span == 1 { "root".to_owned() } else { format!("{:016x}", span - 1) };
            table.push_str(&format!("{trace:032x},{span:016x},{parent},{service}\n"));
        }
        for span in failed(trace) {
            list.push_str(&format!("{trace:032x},{span:016x}\n"));
        }
    }
    let mut import = Import::new(Limits::default());
    import.columns(Columns {
        trace: "t".to_owned(),
        span: "s".to_owned(),
        parent: "p".to_owned(),
        service: Service::Name("svc".to_owned()),
        ..Columns::default()
    });
    import.read("table", table.as_bytes(), Format::Detect);
    import.read_failed("list", list.as_bytes());
    import.report(Reading::default())
}

#[test]
fn nothing_shows_that_a_silent_caller_survived() {
    // Trap 6. The span below the topmost wrote the line, and its request counts as failed.
    let silent = listed(|_| &[3]);
    let edge = &silent.edges[0];
    assert_eq!(edges(&silent)[0], ("gateway", "stock", 20, 20, 0));
    assert_eq!(edge.raw_class(), MeasuredClass::FailOpen);
    assert_eq!((edge.class(), edge.mute), (MeasuredClass::Unknown, true));
    let told = warnings(&silent).concat();
    assert!(told.contains("never seen to fail, though their callees did: gateway"), "{told}");

    // Once it was seen to fail, its silence means something.
    let speaking = listed(|trace| if trace == 1 { &[1] } else { &[3] });
    let edge = &speaking.edges[0];
    assert_eq!((edge.class(), edge.mute), (MeasuredClass::FailOpen, false));

    // Where spans have a place for errors, a span without one is a success; the warning stays.
    let dump = report(&pairs(20, |_| (false, true)));
    assert_eq!(dump.edges[0].class(), MeasuredClass::FailOpen);
    let told = warnings(&dump).concat();
    assert!(told.contains("never seen to fail, though their callees did: A"), "{told}");
}

#[test]
fn traces_chosen_by_their_errors_are_told() {
    // Trap 7.
    let text = "each of the 10 traces has an error";
    let told = |dump: &[u8]| warnings(&report(dump)).iter().any(|line| line.starts_with(text));
    assert!(told(&pairs(10, |trace| (trace % 2 == 0, true))));
    assert!(!told(&pairs(11, |trace| (trace % 2 == 0, trace > 1))));
    assert!(!told(&pairs(9, |trace| (trace % 2 == 0, true))));
}

#[test]
fn a_ratio_of_exactly_a_fifth_has_no_class() {
    // Raw because the border is neither, proven because ten are too few for their interval.
    let report = report(&pairs(30, |trace| (trace <= 2, trace <= 10)));
    let edge = &report.edges[0];
    assert_eq!((edge.p(), edge.p_per_request()), (Some(0.2), Some(0.2)));
    assert_eq!((edge.raw_class(), edge.class()), (MeasuredClass::Unknown, MeasuredClass::Unknown));
}

#[test]
fn without_failures_nothing_is_fail_open() {
    let report = report(&pairs(500, |_| (false, false)));
    let edge = &report.edges[0];
    assert_eq!((edge.raw_class(), edge.class()), (MeasuredClass::NoData, MeasuredClass::NoData));
    assert_eq!((edge.p(), edge.interval()), (None, None));
}

#[test]
fn hand_numbered_traces_of_two_files_are_two() {
    let trace = br#"[{"traceId":"1","id":"1","localEndpoint":{"serviceName":"A"}}]"#;
    assert_eq!(report_of(&[("one", trace), ("other", trace)]).summary.traces, 2);
    assert_eq!(report_of(&[("one", &[&trace[..], trace].concat())]).summary.traces, 1);
}

#[test]
fn several_calls_of_one_request_are_one_piece_of_evidence() {
    // [class-1] Three attempts fail, the request fails: P per call counts three, the class one.
    let report = report(&list(&[
        zipkin(1, 0, "A", "SERVER", r#""tags":{"error":"x"},"#),
        zipkin(2, 1, "B", "SERVER", r#""tags":{"error":"x"},"#),
        zipkin(3, 1, "B", "SERVER", r#""tags":{"error":"x"},"#),
        zipkin(4, 1, "B", "SERVER", ""),
    ]));
    let edge = &report.edges[0];
    assert_eq!((edge.calls, edge.failures, edge.both), (3, 2, 2));
    assert_eq!((edge.requests, edge.requests_with_failure, edge.requests_both), (1, 1, 1));
    assert_eq!((edge.measured.k, edge.measured.n), (1.0, 1.0));
}

#[test]
fn repeated_calls_show_attempts() {
    let trace = |trace: u64, attempts: u64| -> Vec<String> {
        let id = |span: String| span.replace("4bf92f3577b34da6", &format!("{trace:016x}"));
        let error = |bad: bool| if bad { r#""tags":{"error":"x"},"# } else { "" };
        let root = id(zipkin(1, 0, "A", "SERVER", ""));
        let call = |call| id(zipkin(call + 1, 1, "B", "SERVER", error(call < attempts)));
        std::iter::once(root).chain((1..=attempts).map(call)).collect()
    };
    let report = report(&list(&[trace(7, 1), trace(8, 3), trace(9, 2)].concat()));
    assert_eq!(edges(&report), [("A", "B", 6, 3, 0)]);
    assert_eq!(report.edges[0].attempts, Some(3));
}

#[test]
fn a_minute_of_the_callers_own_failures_teaches_nothing() {
    // [class-8] A fails with B twelve times, and twelve times without.
    let calm = report(&pairs(112, |trace| (trace <= 12, trace <= 12)));
    assert_eq!(calm.edges[0].class(), MeasuredClass::FailClose);
    let troubled = report(&pairs(112, |trace| (trace <= 24, trace <= 12)));
    assert_eq!(troubled.edges[0].raw_class(), MeasuredClass::FailClose);
    assert_eq!(troubled.edges[0].class(), MeasuredClass::Unknown);
}

#[test]
fn claims_know_callees_without_spans() {
    // A fails because its database does: it would not claim that, unless nobody sees the call.
    let report = report(&list(&[
        zipkin(1, 0, "A", "SERVER", r#""tags":{"error":"x"},"#),
        zipkin(
            2,
            1,
            "A",
            "CLIENT",
            r#""tags":{"error":"x"},"remoteEndpoint":{"serviceName":"db"},"#,
        ),
    ]));
    let claims = &report.claims[0];
    assert_eq!((claims.failed, claims.claimed, claims.unclaimed), (1, 0, 1));
    let untracked =
        (claims.claimed_if_databases_untracked, claims.unclaimed_if_databases_untracked);
    assert_eq!(untracked, (1, 0));
    assert!(report.edges[0].remote);
}
