//! The peer: Python's gRPC client in a process of its own.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// Python, with gRPC.
pub(super) struct Peer(PathBuf);

/// What the client has seen of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: String,
    pub(super) pushback: String,
    pub(super) claim: String,
}

impl Peer {
    /// The peer; where it is not there `test` is skipped, unless it must not be.
    pub(super) async fn of(test: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let python = root.join("target/peers/venv/bin/python");
        let imports = Command::new(&python).args(["-c", "import grpc"]).output().await;
        if imports.is_ok_and(|output| output.status.success()) {
            return Some(Self(python));
        }
        let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
        assert!(!required, "{test} needs grpcio: run `cargo xtask setup`");
        // Not by `println!`, which is shown of failed tests only.
        let _ = writeln!(io::stderr(), "skipped: {test} needs grpcio: `cargo xtask setup` has it");
        None
    }

    /// Makes so many calls, one after the other, with this service config.
    pub(super) async fn call(&self, address: SocketAddr, calls: u64, config: &str) -> Vec<Seen> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/client.py");
        let mut client = Command::new(&self.0);
        client.arg(script).args([&address.to_string(), &calls.to_string(), config]);
        let client = client.kill_on_drop(true).stderr(Stdio::inherit());
        let output = timeout(TOO_LONG, client.output()).await.expect("it ends").unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(Seen::parse).collect()
    }
}

impl Seen {
    fn parse(line: &str) -> Self {
        let mut words = line.splitn(3, ' ').map(ToOwned::to_owned);
        let mut word = || words.next().unwrap();
        Self { status: word(), pushback: word(), claim: word() }
    }
}

const TOO_LONG: Duration = Duration::from_secs(60);
