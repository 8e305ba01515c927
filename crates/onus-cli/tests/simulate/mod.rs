//! `onus simulate` as people and tools run it.

#[cfg(target_os = "linux")]
mod interrupted;
mod sockets;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn onus(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    command.env_remove("RUST_LOG").env("COLUMNS", "100").arg("simulate").args(arguments);
    command.output().expect("the command runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

/// A scenario in a folder of its own.
fn scenario(test: &str, yaml: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).expect("the test's folder can be made");
    let file = folder.join("scenario.yaml");
    fs::write(&file, yaml).expect("and written");
    file
}

#[test]
fn help_is_as_reviewed() {
    assert_eq!(text(&onus(&["--help"]).stdout), include_str!("help.txt"));
}

#[test]
fn without_a_scenario_the_shipped_ones_are_listed() {
    let output = onus(&[]);
    assert!(output.status.success());
    let chain = text(&output.stdout).lines().find(|line| line.starts_with("  chain "));
    assert!(chain.is_some_and(|line| line.contains("seven services")), "{chain:?}");
}

#[test]
fn json_is_for_tools_and_repeats() {
    let output = onus(&["chain", "-o", "json", "--threads", "2"]);
    assert_eq!(text(&output.stderr), "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&document["schema_version"], &document["partial"]), (&1.into(), &false.into()));
    let handled = |run: usize| &document["runs"][run]["handled"]["G"];
    assert_eq!(document["runs"][1]["policy"], "everywhere");
    assert_eq!([handled(1), handled(5)], [&400_000.0.into(), &100_000.0.into()] as [&Value; 2]);
    assert_eq!(onus(&["chain", "-o", "json", "--threads", "1"]).stdout, output.stdout);
}

#[test]
fn the_table_says_what_it_shows() {
    let output = onus(&["chain", "--sweep", "attempts=3"]);
    let table = text(&output.stdout);
    assert!(table.starts_with("The table of the articles"), "{table}");
    let everywhere = table.lines().find(|line| line.contains("everywhere")).expect("a row");
    assert!(everywhere.contains("27.000"), "{everywhere}");
}

#[test]
fn charts_are_written_where_the_user_says() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("charts");
    let path = folder.to_str().expect("a path that is text");
    for (arguments, files) in [
        (vec!["chain"], vec!["policies.svg", "depth.svg"]),
        (vec!["overload", "--seeds", "1"], vec!["policies.svg", "depth.svg", "goodput.svg"]),
        (vec!["chain", "--sweep", "attempts=2,3"], vec!["sweep.svg"]),
    ] {
        // The folder may be there from a run before.
        let _ = fs::remove_dir_all(&folder);
        let output = onus(&[arguments.as_slice(), &["--plot", path]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut found: Vec<_> = fs::read_dir(&folder)
            .expect("the folder is made")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        found.sort();
        let mut files = files;
        files.sort_unstable();
        assert_eq!(found, files);
        for file in files {
            let svg = fs::read_to_string(folder.join(file)).expect("a chart");
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
            assert!(svg.contains(">everywhere</text>"), "{file}: {svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{file}: {svg}");
        }
    }
}

#[test]
fn csv_has_a_line_for_each_policy_and_service() {
    let output = onus(&["chain", "-o", "csv"]);
    let csv = text(&output.stdout);
    assert_eq!(csv.lines().count(), 1 + 8 * 7);
    assert!(csv.contains("\nownership,,false,1,D,3,100000,2,0,2,0,0,0,\n"), "{csv}");
}

/// What makes no sense is refused with its place and what is allowed, and nothing is done.
#[track_caller]
fn check_refusal(test: &str, yaml: &str, complaint: &str) {
    let file = scenario(test, yaml);
    let file = file.to_str().expect("a path that is text");
    let plots = PathBuf::from(file).with_file_name("plots");
    let output = onus(&[file, "--plot", plots.to_str().expect("a path that is text")]);
    let expected = format!("error: {file}:{complaint}");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with(&expected), "{expected}\n{stderr}");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
    assert!(!plots.exists());
}

const HEAD: &str = "arrivals: {requests: 10}\npolicies: [none]\n";

#[test]
fn scenarios_that_make_no_sense() {
    let head = |rest: &str| format!("{HEAD}{rest}\n");
    let chain = |rest: &str| head(&format!("topology: {{chain: [A, B]}}\n{rest}"));
    check_refusal(
        "unknown-field",
        &chain("colour: red"),
        "4:1: unknown field `colour`, expected one of about, seeds,",
    );
    check_refusal(
        "probability",
        &chain("faults: [{fails: {service: B, probability: 1.5}}]"),
        "4:44: 1.5 is no probability; allowed is 0 to 1\n",
    );
    check_refusal(
        "negative-time",
        &chain("timeout: -5ms"),
        "4:10: `-5ms` is no span of time; allowed is 0s to 24h",
    );
    check_refusal(
        "cycle",
        &head("topology: {calls: {services: {A: [B], B: [A]}}}"),
        "3:11: every service is called by another, so no request comes in: a cycle needs `entries`",
    );
    check_refusal(
        "unreachable",
        &head("topology: {calls: {entries: [A], services: {A: [B], C: [D]}}}"),
        "3:57: no request reaches `C`; allowed are services that an entry calls",
    );
    check_refusal(
        "unknown-service",
        &chain("faults: [{fails: {service: X}}]"),
        "4:28: `X` is no service of the topology",
    );
    check_refusal(
        "policy",
        "arrivals: {requests: 10}\ntopology: {chain: [A]}\npolicies: [everywere]\n",
        "3:12: unknown variant `everywere`, expected one of none, everywhere,",
    );
    check_refusal(
        "no-arrivals",
        "arrivals: {}\ntopology: {chain: [A]}\npolicies: [none]\n",
        " arrivals need `requests` or `for`",
    );
    check_refusal("no-such-edge", &chain("edges: [{from: B, to: A}]"), "4:23: B does not call A");
    check_refusal(
        "against-nobody",
        &chain("against: somebody"),
        "4:10: `somebody` is none of the policies; allowed is none\n",
    );
    check_refusal(
        "negative-probability",
        &chain("bad-keys: -0.1"),
        "4:11: -0.1 is no probability; allowed is 0 to 1\n",
    );
    check_refusal(
        "no-number",
        &chain("faults: [{fails: {service: B, probability: often}}]"),
        "4:44: ",
    );
    check_refusal("missing-file", &head("topology: {csv: {path: gone.csv}}"), "3:24: gone.csv: ");
}

#[test]
fn wishes_that_make_no_sense() {
    for (arguments, complaint) in [
        (vec!["nowhere"], "error: there is no scenario `nowhere`; allowed is a file, or chain"),
        (
            vec!["chain", "--sweep", "colour=1"],
            "error: chain: `colour` cannot be swept; allowed is attempts, percent,",
        ),
        (vec!["chain", "--seeds", "0"], "error: chain: 0 seeds; allowed is 1 to 10000"),
    ] {
        let output = onus(&arguments);
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with(complaint), "{stderr}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""));
    }
}
