//! A process from its start to its end.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::cpu;

/// A process that is ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program on a CPU; what it says goes into a file in `folder`.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        cpu: usize,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        cpu::keep_to(cpu);
        let child = command.spawn();
        cpu::keep_to(cpu::LOAD);
        let child = child.with_context(|| format!("start {name}: {:?}", command.get_program()))?;
        Ok(Self { name, child, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until somebody listens at `address`.
    pub(crate) async fn listens(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let end = Instant::now() + START_MAX;
        while TcpStream::connect(address).await.is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}: {}", self.name, self.last_words());
            }
            if Instant::now() > end {
                bail!("{} does not listen on {address}: {}", self.name, self.last_words());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nobody listens on; the peers cannot say which one they took.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("find a free port")?;
    Ok(listener.local_addr()?)
}

/// A file for a program to read.
pub(crate) fn written(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// The longest that a program may take until it listens.
const START_MAX: Duration = Duration::from_secs(20);
