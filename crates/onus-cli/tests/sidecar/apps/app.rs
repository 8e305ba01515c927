//! An application: a process in a language of its own.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// In what an application is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Node,
}

/// An application that runs.
pub(super) struct App {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) address: SocketAddr,
}

impl Language {
    const ALL: [Self; 2] = [Self::Python, Self::Node];

    /// Whether applications can run in all languages; where not, `test` is skipped, unless it must
    /// not be.
    pub(super) async fn all_are_there(test: &str) -> bool {
        for language in Self::ALL {
            let mut command = language.command();
            let look = command.args(language.look()).output().await;
            if look.is_ok_and(|output| output.status.success()) {
                continue;
            }
            let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
            assert!(!required, "{test} needs {language:?}: run `cargo xtask setup`");
            // Not by `println!`, which is shown of failed tests only.
            let _ = writeln!(
                io::stderr(),
                "skipped: {test} needs {language:?}: `cargo xtask setup` has it"
            );
            return false;
        }
        true
    }

    fn command(self) -> Command {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers");
        match self {
            Self::Python => Command::new(peers.join("venv/bin/python")),
            Self::Node => {
                let mut command = Command::new("node");
                command.env("NODE_PATH", peers.join("node/node_modules"));
                command
            }
        }
    }

    /// Says whether all that an application needs is there.
    fn look(self) -> [&'static str; 2] {
        match self {
            Self::Python => [
                "-c",
                "import grpc, requests, opentelemetry.sdk, opentelemetry.instrumentation.grpc",
            ],
            Self::Node => ["-e", "require('@grpc/grpc-js')"],
        }
    }

    fn script(self) -> PathBuf {
        let name = match self {
            Self::Python => "service.py",
            Self::Node => "service.js",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sidecar/apps").join(name)
    }
}

impl App {
    /// Starts one with this environment.
    pub(super) async fn start(language: Language, environment: &[(&str, &str)]) -> Self {
        let mut child = language
            .command()
            .arg(language.script())
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the language is there");
        let input = child.stdin.take().expect("it is piped");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let port = timeout(TOO_LONG, lines.next_line()).await.expect("it starts in time");
        let port = port.expect("it is text").and_then(|line| line.parse().ok());
        let address = (Ipv4Addr::LOCALHOST, port.expect("it says its port")).into();
        Self { child, input, lines, address }
    }

    /// Tells it where its calls go out.
    pub(super) async fn calls_through(&mut self, outbound: SocketAddr) {
        self.input.write_all(format!("{outbound}\n").as_bytes()).await.expect("it listens");
        let ready = timeout(TOO_LONG, self.lines.next_line()).await.expect("it goes on in time");
        assert_eq!(ready.expect("it is text").as_deref(), Some("ready"));
    }

    /// Ends it; how many requests it has handled.
    pub(super) async fn end(mut self) -> usize {
        self.child.kill().await.expect("it can be ended");
        let mut handled = 0;
        while let Some(line) = self.lines.next_line().await.expect("it is text") {
            assert_eq!(line, "handles");
            handled += 1;
        }
        handled
    }
}

const TOO_LONG: Duration = Duration::from_secs(60);
