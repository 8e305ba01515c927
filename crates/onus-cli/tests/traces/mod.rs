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
fn mistakes_are_told_in_a_line_with_what_would_be_right() {
    let table = file("mistakes.csv", "trace,span\n1,2\n");
    let empty = file("mistakes-empty.csv", "");
    let folder = env!("CARGO_TARGET_TMPDIR");
    let is_folder = format!("error: failed to open {folder}: it is a folder; name its files\n");
    let columns = "error: --format table needs the names of its columns: --trace-column, \
                   --span-column, --parent-column, and --service-column or --pod-column\n";
    for (arguments, code, told) in [
        (folder, 1, &*is_folder),
        (&format!("{table} --errors {folder}"), 1, &is_folder),
        (&format!("{table} --format table"), 2, columns),
        ("- --errors -", 2, "error: standard input can be read once only\n"),
        (
            &table,
            3,
            &format!(
                "warning: {table}: byte 0: 't' where '{{', '[' or a table whose columns are named \
                 should be; 15 bytes skipped\nwarning: skipped in all: 1 documents, 15 bytes\n"
            ),
        ),
        (
            &format!("--graph {empty}"),
            3,
            &format!(
                "warning: {empty}: line 1: `` is no header; allowed is caller,callee,calls; skipped\n\
                 warning: skipped in all: 1 edges of graphs\n"
            ),
        ),
    ] {
        let output = onus(&format!("traces {arguments}"), "");
        assert_eq!((text(&output.stderr), output.status.code()), (told, Some(code)), "{arguments}");
    }
}

/// A file with this content, which only one test uses.
fn file(name: &str, content: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("the file can be written");
    path.to_str().expect("the path is text").to_owned()
}

#[test]
fn the_radius_is_that_of_dumps_and_graphs_together() {
    // gateway → shop → stock → store; shop survives stock, as the dump proves.
    let graph = file("radius.csv", "caller,callee\ngateway,shop\nshop,stock\nstock,store\n");
    let radius = |options: &str| {
        let output = onus(&format!("traces - --graph {graph} -o json {options}"), &dump(40, 20, 1));
        assert_eq!(text(&output.stderr), "", "{options}");
        serde_json::from_slice::<Value>(&output.stdout).expect("it is JSON")["radius"].clone()
    };
    let open = radius("");
    let entry = &open["entries"][0];
    assert_eq!(entry["entry"], "gateway");
    assert_eq!((&entry["now"]["radius"], &entry["now"]["amplification"]), (&2.into(), &4.0.into()));
    assert_eq!(entry["with_ownership"]["radius"], 1);
    assert_eq!(open["assumed"]["on_edges"], 3);

    // The request that failed with its callee is more than none, and less than proof.
    let close = onus(&format!("traces - --graph {graph} -o json --attempts 3"), &dump(9, 3, 2));
    let close: Value = serde_json::from_slice(&close.stdout).expect("it is JSON");
    let now = &close["radius"]["entries"][0]["now"];
    assert_eq!((&now["radius"], &now["amplification"]), (&3.into(), &27.0.into()));
    assert_eq!(now["path"], serde_json::json!(["gateway", "shop", "stock", "store"]));
    let change = &close["radius"]["lower"]["now"][0];
    assert_eq!((&change["change"], &change["amplification"]), (&"budget".into(), &9.0.into()));
}

#[test]
fn the_table_says_what_would_change_a_storm() {
    let graph = file("chain.csv", "caller,callee,calls\na,b,9\nb,c,9\nc,d,9\n");
    let output = onus(&format!("traces --graph {graph} --no-claims b"), "");
    let table = text(&output.stdout);
    for part in [
        "over 3 edges. 2 attempts of a failing call are assumed (--attempts)",
        "│ a     ┆      3 ┆              3 ┆            8x ┆             8x │",
        "The longest way below a: a → b → c → d.",
        "│ a retry budget for a → b            ┆      2 ┆            4x │",
        "│ ownership, also in b                ┆      1 ┆            2x │",
        "below 1 / amplification: 12 %, with ownership 12 %",
    ] {
        assert!(table.contains(part), "{part:?} in\n{table}");
    }
    assert_eq!(output.status.code(), Some(0));

    let output = onus(&format!("traces --graph {graph} --context-loss e"), "");
    let expected = "error: e is no service that calls another, or is called\n";
    assert_eq!((text(&output.stderr), output.status.code()), (expected, Some(2)));
}

#[test]
fn what_in_a_graph_is_no_edge_is_told_and_ends_with_3() {
    let graph = file("broken.json", r#"[{"parent": "a", "child": "b"}, {"parent": "c"}, {"#);
    let output = onus(&format!("traces --graph {graph} -o json"), "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["radius"]["entries"][0]["now"]["radius"], 1);
    assert_eq!(document["skipped"]["edges_of_graphs"], 2);
    assert_eq!(
        text(&output.stderr),
        format!(
            "warning: {graph}: edge 2: needs the names `parent` and `child`, and a number of calls \
             as `callCount`; skipped\n\
             warning: {graph}: line 1 column 50: EOF while parsing an object; skipped\n\
             warning: skipped in all: 2 edges of graphs\n"
        )
    );
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn pictures_show_classes_and_the_longest_way() {
    let graph = file("picture.csv", "caller,callee\ngateway,shop\n");
    for (format, parts) in [
        ("dot", ["digraph ", "label=\"P 0.05 of 20\", style=dashed", "penwidth=3"]),
        ("mermaid", ["flowchart LR\n", "-.->|\"P 0.05 of 20\"|", "==>"]),
        ("svg", ["<svg ", ">P 0.05 of 20</text>", "stroke-width=\"3\""]),
    ] {
        let output = onus(&format!("traces - --graph {graph} -o {format}"), &dump(40, 20, 1));
        let picture = text(&output.stdout);
        for part in parts {
            assert!(picture.contains(part), "{part:?} in\n{picture}");
        }
    }
}

#[test]
fn help_is_as_reviewed() {
    let output = onus("traces --help", "");
    assert_eq!(text(&output.stdout), include_str!("help.txt"));
}
