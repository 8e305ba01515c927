//! The simulator against services on real sockets: what `onus demo` measures in each of them is what
//! `onus simulate` counts, hop by hop and policy by policy.
//!
//! The vectors of `docs/conformance/trees` run on both as well (`onus-demo/tests/conformance`,
//! `onus-sim/tests/simulate/vectors.rs`), each against the same written counts.

use std::process::Command;

use serde_json::Value;

use super::{onus, scenario, text};

/// The policies of the demo, and those that are the same in the simulator. Marks travel wherever the
/// demo has ownership.
const POLICIES: &str = "policies:\n- none\n- everywhere\n\
    - {policy: budget-per-request, name: budget}\n\
    - {policy: ownership-mark, name: ownership}\n\
    - {policy: ownership-budget, name: ownership-budget, mark: true}\n";

const REQUESTS: u64 = 40;

fn demo(arguments: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    let requests = REQUESTS.to_string();
    command.env_remove("RUST_LOG").args(["demo", "-o", "json", "--requests", &requests]);
    let output = command.args(arguments.split_whitespace()).output().expect("the command runs");
    assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn simulated(test: &str, services: &str, edges: &str, faults: &str) -> Value {
    let yaml = format!(
        "arrivals: {{requests: {REQUESTS}, rate: 1000}}\n\
         topology: {{chain: [A, B, C, D, E, F, G]}}\nbackoff: none\n\
         services: {{{services}}}\nedges: [{edges}]\nfaults: [{faults}]\n{POLICIES}"
    );
    let file = scenario(test, &yaml);
    let output = onus(&[file.to_str().expect("a path that is text"), "-o", "json"]);
    assert!(output.status.success(), "{test}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

#[test]
fn counts_of_the_simulator_are_those_of_real_sockets() {
    let observing = "A: {mode: observe}, B: {mode: observe}, C: {mode: observe}, \
                     D: {mode: observe}, E: {mode: observe}, F: {mode: observe}, \
                     G: {mode: observe}";
    let d = "fails: {service: D}";
    for (arguments, services, edges, faults) in [
        ("", "", "", d),
        ("--fail G", "", "", "fails: {service: G}"),
        ("--fail B", "", "", "fails: {service: B}"),
        ("--context-loss C", "C: {context-lost: true}", "", d),
        ("--context-loss B", "B: {context-lost: true}", "", d),
        ("--no-retries C", "", "{from: C, to: D, attempts: 1}", d),
        ("--no-claims D", "D: {onus: false}", "", d),
        ("--no-claims B", "B: {onus: false}", "", d),
        ("--shield D", "D: {shield: true}", "", d),
        ("--observe", observing, "", d),
    ] {
        let test = format!("sockets{}", arguments.replace([' ', '-'], ""));
        let faults = format!("{{{faults}}}");
        let (measured, counted) = (demo(arguments), simulated(&test, services, edges, &faults));
        let runs = |document: &Value| document["runs"].as_array().expect("runs").clone();
        for (measured, counted) in runs(&measured).iter().zip(runs(&counted)) {
            let policy = measured["policy"].as_str().expect("a name");
            assert_eq!(policy, counted["policy"], "{arguments}");
            let handled = measured["handled"].as_object().expect("counts");
            for (service, measured) in handled {
                let counted = counted["handled"][service].as_f64();
                assert_eq!(
                    counted,
                    measured.as_f64(),
                    "onus demo {arguments}: {policy}, {service}"
                );
            }
        }
    }
}
