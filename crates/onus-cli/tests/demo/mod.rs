//! `onus demo` as people and tools run it.

use std::process::{Command, Output};

use serde_json::{Value, json};

pub(crate) fn onus(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    command.env_remove("RUST_LOG").env("COLUMNS", "100").args(arguments.split_whitespace());
    command.output().expect("the command runs")
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

/// A run of which all counts are the same below D.
fn run(policy: &str, [b, c, d]: [u64; 3]) -> Value {
    let counts = json!({"A": 10, "B": b, "C": c, "D": d, "E": d, "F": d, "G": d});
    json!({"policy": policy, "handled": counts, "expected": counts, "client_errors": 10})
}

#[test]
fn json_is_for_tools() {
    let output = onus("demo --requests 10 -o json");
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let expected = json!({
        "schema_version": 1,
        "requests": 10,
        "runs": [
            run("none", [10, 10, 10]),
            run("everywhere", [20, 40, 80]),
            run("budget", [11, 12, 13]),
            run("ownership", [10, 10, 20]),
            run("ownership-budget", [10, 10, 11]),
        ],
    });
    assert_eq!(document, expected);
}

#[test]
fn json_tells_bad_keys_apart_where_there_are_some() {
    let output = onus("demo --requests 20 --bad-keys 5 -o json");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let everywhere = &document["runs"][1];
    let bad = json!({"A": 2, "B": 4, "C": 8, "D": 16, "E": 16, "F": 16, "G": 16});
    assert_eq!(everywhere["bad_keys"], json!({"handled": bad, "expected": bad}));
    assert_eq!(everywhere["handled"]["D"], 34);
    assert_eq!(everywhere["expected"]["D"], 34);
    assert_eq!(everywhere["client_errors"], 2);
}

#[test]
fn json_expects_nothing_where_nothing_is_given() {
    let output = onus("demo --requests 4 --failure-rate 0.5 --output json");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["runs"][1]["expected"], Value::Null);
    assert_eq!(document["runs"][0]["expected"]["G"], 4);
}

/// Compares the first line, and looks for others; of a table's lines the words count.
#[track_caller]
fn check_table(arguments: &str, headline: &str, lines: &[&str]) {
    let output = onus(arguments);
    let table = text(&output.stdout);
    let chain = "A \u{2192} B \u{2192} C \u{2192} D \u{2192} E \u{2192} F \u{2192} G: ";
    assert_eq!(table.lines().next(), Some(format!("{chain}{headline}").as_str()));
    let words = |line: &str| {
        let words = line.split(['\u{2502}', '\u{2506}', ' ']).filter(|word| !word.is_empty());
        words.map(ToOwned::to_owned).collect::<Vec<_>>().join(" ")
    };
    for line in lines {
        assert!(table.lines().any(|found| words(found) == *line), "{line:?} in\n{table}");
    }
}

#[test]
fn the_table_says_what_the_client_saw() {
    let lines = [
        "ownership measured 4 8 8 8 8 8 8 4",
        "formula 4 8 8 8 8 8 8",
        "no retries failed with status 502 (no claim, ownership is off)",
        "ownership failed at B, 1 hop down: retry closed",
    ];
    check_table("demo --requests 4 --fail b", "4 requests to A, B fails every request.", &lines);
}

#[test]
fn a_second_table_is_about_bad_keys() {
    let lines = [
        "one retry at every hop measured 20 22 26 34 50 50 50 2",
        "Those of them with a bad key:",
        "one retry at every hop measured 2 4 8 16 32 32 32 16.0",
        "formula 2 4 8 16 32 32 32",
        "ownership failed at E, 4 hops down: retry closed, in 2 of 20 requests",
    ];
    let headline = "20 requests to A, E fails the 5 % of them with a bad key.";
    check_table("demo --requests 20 --fail e --bad-keys 5", headline, &lines);
}

#[test]
fn help_is_as_reviewed() {
    let output = onus("demo --help");
    assert_eq!(text(&output.stdout), include_str!("help.txt"));
}

#[test]
fn a_wrong_wish_is_refused_with_what_would_be_right() {
    fn check(arguments: &str, message: &str) {
        let output = onus(&format!("demo {arguments}"));
        let stderr = text(&output.stderr);
        assert_eq!(stderr.lines().next(), Some(message), "{stderr}");
        assert!(stderr.ends_with("For more information, try '--help'.\n"), "{stderr}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
    }
    check(
        "--fail H",
        "error: invalid value 'H' for '--fail <NODE>': no service of the chain has this name; \
         allowed is A, B, C, D, E, F or G",
    );
    check("--failure-rate 1.5", "error: the failure rate is 1.5; allowed is 0 to 1");
    check("--bad-keys 0", "error: the percentage of bad keys is 0; allowed is 1 to 100");
    check("--requests 0", "error: the number of requests is 0; allowed is 1 to 1000000");
    check(
        "--hang --shield D",
        "error: a shield is told in answers, and above a hanging D none comes in time; leave one \
         of them out",
    );
}

#[test]
fn an_analysis_remembers_what_a_service_survives() {
    let output = onus("demo --analysis --requests 400 -o json");
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
    let shown: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let share = |of: &str| {
        let [errors, closed] = [0, 1].map(|at| shown[of][at].as_f64().expect("a count"));
        assert!(errors > 20.0, "one request in ten fails: {shown}");
        closed / errors
    };
    // 1 - 0.9², of some forty errors.
    assert!((0.02..0.5).contains(&share("without_memory")), "{shown}");
    assert_eq!(share("with_memory"), 0.0);
    assert_eq!(shown["radius"], json!([6, 1]));
    assert_eq!(shown["incident"]["origin"], "D");
    assert_eq!(shown["incident"]["minutes"][0]["failed"], 1_200, "of three hops: {shown}");
    // A to D: 15 requests for one without ownership, of which 5 were made.
    assert_eq!(shown["incident"]["roots"][0]["prevented"]["persistent"], 4_000.0, "{shown}");
}

#[test]
fn sidecars_do_for_services_what_the_layers_do() {
    for (more, [b, c, d], [c_owned, d_owned]) in
        [("", [20, 40, 80], [10, 20]), (" --context-loss C", [20, 40, 80], [20, 40])]
    {
        let output = onus(&format!("demo --requests 10 --sidecar -o json{more}"));
        assert_eq!(text(&output.stderr), "");
        let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let handled = |run: usize, node: &str| document["runs"][run]["handled"][node].clone();
        assert_eq!([handled(1, "B"), handled(1, "C"), handled(1, "D")], [b, c, d], "{more}");
        assert_eq!([handled(3, "C"), handled(3, "D")], [c_owned, d_owned], "{more}");
        for run in 0..5 {
            assert_eq!(document["runs"][run]["handled"], document["runs"][run]["expected"]);
        }
    }
}
