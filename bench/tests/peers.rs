//! The comparison as its users run it, without Onus and without peers: the floors are always there.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn report(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_onus-bench"))
        .env_remove("ONUS_PEERS")
        .args(["peers", "--requests-only", "--rounds", "1", "--seconds", "1", "--commit", "test"])
        .args(arguments)
        .arg("--report")
        .arg(folder)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = std::fs::read(folder.join("test.json"));
    let json = json.unwrap_or_else(|error| panic!("a report is written: {error}\n{said}"));
    (output.status.code(), said, serde_json::from_slice(&json).expect("it is JSON"))
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn floors_are_measured_in_every_protocol() {
    let (code, said, report) = report(
        &folder("floors"),
        &["--work", "h1-rate", "--work", "grpc", "--subject", "bare-hyper", "--subject", "direct"],
    );
    // Without Envoy nothing says whether the machine was quiet: no verdict.
    assert_eq!(code, Some(3), "{said}");
    let samples = report["samples"][0].as_array().expect("one round");
    let mut cells: Vec<_> = samples
        .iter()
        .map(|sample| format!("{} {}", sample["work"], sample["subject"]).replace('"', ""))
        .collect();
    cells.sort_unstable();
    assert_eq!(cells, ["grpc bare-hyper", "h1-rate bare-hyper", "h1-rate direct"]);
    for sample in samples {
        let requests = sample["requests"].as_u64().expect("a count");
        match sample["work"].as_str() {
            // What was due was sent, however slow the machine is: five deviations around 2,000.
            Some("h1-rate") => {
                assert!((1_776..=2_224).contains(&requests), "{sample}");
                assert!(
                    sample["latency"]["p99_us"].as_f64() >= sample["latency"]["p50_us"].as_f64()
                );
                assert!(sample["latency"]["p50_us"].as_f64() > Some(0.0), "{sample}");
            }
            _ => assert!(requests > 0 && sample["latency"].is_null(), "{sample}"),
        }
        let is_direct = sample["subject"] == "direct";
        assert_eq!(sample["cost"].is_null(), is_direct, "{sample}");
        assert!(is_direct || sample["cost"]["cpu_us"].as_f64() > Some(1.0), "{sample}");
    }
    let bars = report["bars"].as_array().expect("bars");
    assert!(!bars.is_empty() && bars.iter().all(|bar| bar["verdict"] == "skipped"), "{bars:?}");
}

#[test]
fn an_onus_that_is_not_there_is_said_in_a_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_onus-bench"))
        .env_remove("ONUS_PEERS")
        .args(["peers", "--onus", "no/such/onus"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no no/such/onus"), "{said}");
}
