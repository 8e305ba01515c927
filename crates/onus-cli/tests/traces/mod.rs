//! `onus traces` as people and tools run it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn onus(arguments: &str, input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    command.env_remove("RUST_LOG").env("COLUMNS", "100").args(arguments.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that refuses its arguments does not read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the command ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

/// `shop` calls `stock` in each trace; `stock` fails in the first `failed`, `shop` in the first
/// `both`.
fn dump(traces: usize, failed: usize, both: usize) -> String {
    let error = |bad: bool| if bad { r#"[{"key": "error", "value": true}]"# } else { "[]" };
    let trace = |index: usize| {
        format!(
            r#"{{"traceID": "00000000000000{index:02x}", "spans": [
                {{"traceID": "00000000000000{index:02x}", "spanID": "a", "processID": "p1",
                  "tags": {}}},
                {{"traceID": "00000000000000{index:02x}", "spanID": "b", "processID": "p2",
                  "references": [{{"refType": "CHILD_OF", "spanID": "a"}}], "tags": {}}}
            ], "processes": {{"p1": {{"serviceName": "shop"}}, "p2": {{"serviceName": "stock"}}}}}}"#,
            error(index <= both),
            error(index <= failed),
        )
    };
    let traces: Vec<_> = (1..=traces).map(trace).collect();
    format!(r#"{{"data": [{}]}}"#, traces.join(","))
}

#[test]
fn csv_is_for_tools() {
    let output = onus("traces - -o csv", &dump(40, 20, 1));
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stdout),
        "caller,callee,calls,failures,both,p,p_per_request,raw_class,class,low,high\n\
         shop,stock,40,20,1,0.0500,0.0500,fail-open,fail-open,0.0112,0.1960\n"
    );
}

#[test]
fn json_has_everything() {
    let output = onus("traces - --output json", &dump(12, 11, 11));
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let edge = &document["edges"][0];
    assert_eq!((&edge["class"], &edge["rule"]), (&"fail-close".into(), &"proven".into()));
    assert_eq!(document["claims"][1]["claim"], 11);
    assert_eq!(document["depth"]["hops"]["1"], 12);
    assert_eq!(document["amplification"][0]["every_hop_3_tries"], 3.0);
    assert_eq!(document["skipped"]["bytes"], 0);
    assert_eq!(document["warnings"], Value::Array(Vec::new()));
}

#[test]
fn the_wide_table_says_why() {
    let output = onus("traces - -o wide", &dump(40, 20, 1));
    let table = text(&output.stdout);
    let headline = "40 traces, 20 with an error; 80 requests of 2 services, 21 failed; 1 edges.";
    assert_eq!(table.lines().next(), Some(headline));
    for part in ["1 of 20", "0.01 to 0.20", "proven", "median 0, 90 % up to 1, most 1"] {
        assert!(table.contains(part), "{part:?} in\n{table}");
    }
}

#[test]
fn what_was_skipped_is_told_and_ends_with_3() {
    let dump = dump(40, 20, 1);
    let cut = dump.len() - 9;
    let output = onus("traces - -o csv", &dump[..cut]);
    // The last trace does not say any more who its second service is.
    assert!(text(&output.stdout).contains("shop,stock,39,20,1"), "{}", text(&output.stdout));
    let span = dump.rfind(r#"{"traceID""#).expect("there are spans");
    let name = dump.rfind("\"stock").expect("it has a name");
    let expected = format!(
        "warning: standard input: byte {span}: a span whose trace does not name its service; skipped\n\
         warning: standard input: byte {name}: the input ends in the middle; {} bytes skipped\n\
         warning: skipped in all: 1 documents, {} bytes, 1 spans\n",
        cut - name,
        cut - name,
    );
    assert_eq!(text(&output.stderr), expected);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn tables_are_read_by_the_names_of_their_columns() {
    let table = "trace;id;parent;pod;failed\n\
                 4bf92f3577b34da6;00f067aa0ba902b7;root;shop-5d9c7b6f48-x2x7q;no\n\
                 4bf92f3577b34da6;00f067aa0ba902b8;00f067aa0ba902b7;\"stock-0\";yes\n";
    let columns = "--trace-column trace --span-column id --parent-column parent --pod-column pod";
    let output = onus(&format!("traces - -o csv {columns} --error-column failed"), table);
    let edges = text(&output.stdout);
    assert!(edges.contains("\nshop,stock,1,1,0,"), "{edges}{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));

    let output = onus(&format!("traces - -o csv {columns} --error-column fail"), table);
    let warnings = "warning: standard input: byte 0: there is no column \"fail\"; file skipped\n\
                    warning: skipped in all: 1 files\n";
    assert_eq!((text(&output.stderr), output.status.code()), (warnings, Some(3)));

    let output = onus("traces - --trace-column trace", table);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("--span-column <COLUMN>"), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let output = onus("traces no-such-dump.json", "");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: failed to open no-such-dump.json: "), "{stderr}");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
}

#[test]
fn help_is_as_reviewed() {
    let output = onus("traces --help", "");
    assert_eq!(text(&output.stdout), include_str!("help.txt"));
}
