//! `onus model` as people and tools run it.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::demo::{onus, text};

#[test]
fn json_is_for_tools() {
    let output = onus("model --nodes 3 --slice policies-class -o json");
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(
        (&document["schema_version"], &document["nodes"], &document["configurations"]),
        (&json!(1), &json!(3), &json!(200))
    );
    assert!(document["traces"].as_u64() > Some(1_000), "{document}");
    let properties = document["properties"].as_array().expect("a list");
    assert_eq!(properties.len(), 17);
    assert_eq!(properties[0], json!({"name": "one-culprit", "violations": 0}));
}

#[test]
fn a_broken_property_is_told_with_a_trace_that_runs_again() {
    let output = onus("model --nodes 3 --slice policies-class --rules plain-matrix");
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: failed to keep "), "{stderr}");
    let stdout = text(&output.stdout);
    let found = "at-least-once-weak: the smallest trace that breaks it is ";
    let id = stdout.lines().find_map(|line| line.strip_prefix(found)).expect(stdout);
    let rerun = onus(&format!("model --rerun {id}"));
    assert!(rerun.status.success());
    let trace = text(&rerun.stdout);
    assert!(stdout.contains(trace), "{trace}\nin\n{stdout}");
    for line in [
        "rules: plain-matrix, every error of a dependency is unclaimed, retried or not",
        "A -> B: 2 attempts, fail-close",
        "C fails by itself: claimed (own)",
        "A reads unclaimed from B: suppressed",
        "requests: A 1, B 1, C 1",
        "    C-->>B: own error, claimed (own)",
    ] {
        assert!(trace.lines().any(|found| found == line), "{line:?} in\n{trace}");
    }
}

/// Runs the command on a file with this text.
fn with_config(name: &str, yaml: &str, arguments: &str) -> Output {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, yaml).expect("the file can be written");
    onus(&format!("model --config {} {arguments}", path.display()))
}

const MESH: &str = "\
entry: gateway
services:
  - {name: orders, context: lost}
edges:
  - {from: gateway, to: orders, attempts: 2}
  - {from: orders, to: payments, attempts: 2}
";

#[test]
fn a_mesh_of_ones_own_is_checked() {
    let output = with_config("lost.yaml", MESH, "-o json");
    assert_eq!(output.status.code(), Some(1), "retries of two hops multiply");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let payments = json!({
        "service": "payments",
        "fails": {"requests": 4, "without_ownership": 4},
        "fails_at_will": {"requests": 4, "without_ownership": 4},
        "answers_lost": {"requests": 4, "without_ownership": 4},
        "multiplies": true,
        "retried_at": ["gateway -> orders", "orders -> payments"],
    });
    assert_eq!(document["culprits"][1], payments);
    let kept = MESH.replace("context: lost", "context: kept");
    let output = with_config("kept.yaml", &kept, "");
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{stdout}");
    assert!(stdout.contains("payments   2 (4)"), "{stdout}");
    let output = with_config("again.yaml", MESH, "--rerun fails:payments");
    let stdout = text(&output.stdout);
    assert!(stdout.contains("orders fails: claimed (context-lost)"), "{stdout}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    fn check(output: &Output, message: &str) {
        let stderr = text(&output.stderr);
        assert!(stderr.contains(message), "{stderr}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
    }
    check(&onus("model --nodes 7"), "invalid value '7' for '--nodes <N>': 7 is not in 2..=6");
    check(&onus("model --rules matrix"), "[possible values: shipped,");
    check(&onus("model --rerun policies-class.4"), "no trace has the id `policies-class.4`");
    check(&onus("model --config nowhere.yaml"), "error: nowhere.yaml: No such file or directory");
    let typo = MESH.replace("to: payments, attempts", "to: payments, tries");
    check(
        &with_config("typo.yaml", &typo, ""),
        "typo.yaml:6:34: unknown field `tries`, expected one of from, to, attempts, class, held\n",
    );
    let cycle = format!("{MESH}  - {{from: payments, to: gateway}}\n");
    check(
        &with_config("cycle.yaml", &cycle, ""),
        "cycle.yaml:7:26: `gateway` is the entry, and a call of it closes a cycle\n   |\n \
         7 |   - {from: payments, to: gateway}\n   |                          ^\n",
    );
    check(
        &with_config("kept.yaml", MESH, "--rerun fails:stock"),
        "no short trace has the id `fails:stock`; ids are `fails:SERVICE`,",
    );
}

#[test]
fn the_page_shows_what_comes_of_its_example() {
    let page = include_str!("../../../../docs/model.md");
    let (_, rest) = page.split_once("```yaml\n").expect("an example");
    let (example, rest) = rest.split_once("```").expect("its end");
    let (_, rest) = rest.split_once("```text\n").expect("what comes of it");
    let (table, _) = rest.split_once("```").expect("its end");
    let output = with_config("page.yaml", example, "");
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}{}", text(&output.stderr));
    assert!(stdout.contains(table), "{stdout}");
}

#[test]
fn help_is_as_reviewed() {
    let output = onus("model --help");
    assert_eq!(text(&output.stdout), include_str!("help.txt"));
}
