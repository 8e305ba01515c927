//! Sidecars of the demo: each is `onus proxy` as a process of its own.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onus_demo::{Beside, Sidecar, Sidecars};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The processes that were started, with a directory for their files. Both go with this.
pub(super) struct Processes {
    directory: PathBuf,
    children: Vec<Child>,
}

impl Processes {
    pub(super) fn new() -> io::Result<Self> {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("onus-demo-{}-{run}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        Ok(Self { directory, children: Vec::new() })
    }
}

impl Sidecars for Processes {
    async fn start(&mut self, beside: Beside<'_>) -> io::Result<Sidecar> {
        let path = self.directory.join(format!("{}.yaml", beside.service.name));
        std::fs::write(&path, beside.configuration(0, 0))?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["proxy", "-c"])
            .arg(&path)
            .env("RUST_LOG", "onus_proxy=info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stderr = child.stderr.take().ok_or_else(|| io::Error::other("it has no log"))?;
        self.children.push(child);
        let mut lines = BufReader::new(stderr).lines();
        let listens = timeout(START_MAX, async {
            let mut last = String::new();
            while let Some(line) = lines.next_line().await? {
                if line.contains("the proxy listens") {
                    return Ok(line);
                }
                last = line;
            }
            Err(io::Error::other(last))
        });
        let line = listens.await.map_err(|_| io::Error::other("it does not start in time"))??;
        // A log that nobody reads would stop its writer.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        if beside.service.shield {
            shield(address(&line, "admin")?).await?;
        }
        Ok(Sidecar { inbound: address(&line, "inbound")?, outbound: address(&line, "outbound")? })
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The address that a log line tells under this name.
fn address(line: &str, name: &str) -> io::Result<SocketAddr> {
    let name = format!("{name}=");
    let value = line.split_whitespace().find_map(|word| word.strip_prefix(&name));
    let address = value.and_then(|value| value.parse().ok());
    address.ok_or_else(|| io::Error::other(format!("no address {name} in {line:?}")))
}

/// Puts the shield up, as an operator would.
async fn shield(admin: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(admin).await?;
    let switches = "shield: on\nwho: onus demo\nwhy: to show what a shield does\n";
    let request = format!(
        "POST /api/v1/switches HTTP/1.1\r\nhost: {admin}\r\ncontent-type: application/yaml\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{switches}",
        switches.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(io::Error::other(answer)) }
}

/// A process starts in a moment; a busy machine takes its time.
const START_MAX: Duration = Duration::from_secs(30);
