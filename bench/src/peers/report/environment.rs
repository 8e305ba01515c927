//! Where the figures come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde::Serialize;

use crate::cli::PeersOptions;
use crate::peers::process::cpu;
use crate::peers::subject::{Programs, version};

/// Where the figures come from.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Environment {
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) kernel: String,
    pub(crate) congestion_control: String,
    /// When the run began: 1, 5 and 15 minutes.
    pub(crate) load_average: String,
    /// Onus's.
    pub(crate) allocator: &'static str,
    /// Program and what it says of its version.
    pub(crate) versions: Vec<(&'static str, String)>,
}

impl Environment {
    pub(crate) fn of(programs: &Programs, options: &PeersOptions) -> Self {
        let commit = options.commit.clone();
        let said = |program: Option<&PathBuf>, argument: &str| match program {
            Some(program) => version(program, argument),
            None => "skipped: not there".to_owned(),
        };
        Self {
            date: now(),
            commit: commit.unwrap_or_else(|| said_by("git", &["rev-parse", "--short", "HEAD"])),
            cpu: cpu_model(),
            cpus: cpu::available(),
            kernel: line("/proc/sys/kernel/osrelease"),
            congestion_control: line("/proc/sys/net/ipv4/tcp_congestion_control"),
            load_average: line("/proc/loadavg"),
            allocator: allocator(&programs.onus),
            versions: vec![
                ("Onus", version(&programs.onus, "--version")),
                ("Envoy", said(programs.envoy.as_ref().map(|envoy| &envoy.program), "--version")),
                ("HAProxy", said(programs.haproxy.as_ref(), "-v")),
                ("nginx", said(programs.nginx.as_ref(), "-v")),
                ("rustc", said_by("rustc", &["--version"])),
            ],
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a report says when it was made")]
fn now() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    name.map_or("unknown", |name| name.trim_start_matches(['\t', ' ', ':'])).to_owned()
}

fn line(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    let said = Command::new(program).args(arguments).output();
    said.map_or_else(
        |_| "unknown".to_owned(),
        |said| String::from_utf8_lossy(&said.stdout).trim().to_owned(),
    )
}

/// A program that brings its own allocator carries its name.
fn allocator(program: &Path) -> &'static str {
    let bytes = fs::read(program).unwrap_or_default();
    let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    if has(b"jemalloc") {
        "jemalloc"
    } else if has(b"mimalloc") {
        "mimalloc"
    } else {
        "of the system"
    }
}
