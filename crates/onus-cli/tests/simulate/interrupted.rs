//! `onus simulate` that is asked to end before it is done.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{scenario, text};

/// More than an hour of work.
const LONG: &str = "arrivals: {requests: 1000000000, rate: 1000}\ntopology: {chain: [A, B]}\n\
                    faults: [{fails: {service: B}}]\npolicies: [none, everywhere]\n";

#[test]
fn run_that_is_asked_to_end_prints_what_it_has_and_says_that_it_is_partial() {
    let file = scenario("interrupted", LONG);
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let onus = Command::new(env!("CARGO_BIN_EXE_onus"))
            .args(["simulate", "-o", "json", "--threads", "1"])
            .arg(&file)
            .env_remove("RUST_LOG")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        wait_until_caught(&onus, number);
        let pid = onus.id().to_string();
        let kill = Command::new("kill").args(["-s", signal, &pid]).status().expect("kill runs");
        assert!(kill.success());
        let output = onus.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{signal}: {}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(document["partial"], true);
        assert_eq!(document["runs"][0]["policy"], "none");
        assert!(document["runs"][0]["attempts"]["mean"].as_f64() > Some(0.0), "{document}");
        assert!(text(&output.stderr).contains("interrupted, the result is partial"), "{output:?}");
    }
}

/// Until the process handles a signal by itself: before that the signal would just end it.
fn wait_until_caught(process: &Child, signal: u32) {
    #[expect(clippy::disallowed_methods, reason = "bounds the wait for another process")]
    let started = Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", process.id()));
        let status = status.expect("the process runs");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        let mask = u64::from_str_radix(mask.trim(), 16).expect("a number");
        if mask & (1 << (signal - 1)) != 0 {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "it never handles the signal");
        thread::yield_now();
    }
}
