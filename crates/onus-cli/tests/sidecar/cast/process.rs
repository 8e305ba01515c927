//! A sidecar that runs.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::Page;
use super::page;

/// `onus proxy`, until it is dropped.
pub(crate) struct Sidecar {
    child: Child,
    file: PathBuf,
    said: Arc<Mutex<Vec<String>>>,
    pub(crate) inbound: SocketAddr,
    pub(crate) outbound: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Sidecar {
    /// Starts one with this configuration, which has nothing of `outbound` and `admin`.
    pub(crate) async fn start(yaml: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sidecar-{}-{number}.yaml", std::process::id());
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let listen = "outbound: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"127.0.0.1:0\"}\n";
        std::fs::write(&file, format!("{yaml}{listen}")).expect("the folder is there");
        let mut child = Command::new(binary())
            .args(["proxy", "-c"])
            .arg(&file)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the command is built");
        let stderr = child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines();
        let said = Arc::new(Mutex::new(Vec::new()));
        let mut listens = None;
        while listens.is_none() {
            let line = timeout(TOO_LONG, lines.next_line()).await.expect("it starts in time");
            let Some(line) = line.expect("it says something") else {
                panic!("it does not start: {:?}", said.lock());
            };
            if line.contains("the proxy listens") {
                listens = Some(line.clone());
            }
            said.lock().expect("nobody panics here").push(line);
        }
        let listens = listens.expect("it listens");
        let says = said.clone();
        // Whoever writes to a pipe that nobody reads stops.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                says.lock().expect("nobody panics here").push(line);
            }
        });
        let address = |name: &str| -> SocketAddr {
            let rest = listens.split(&format!("{name}=")).nth(1).expect("it says where");
            rest.split_whitespace().next().and_then(|word| word.parse().ok()).expect("an address")
        };
        let (inbound, outbound) = (address("inbound"), address("outbound"));
        Self { child, file, said, inbound, outbound, admin: address("admin") }
    }

    pub(crate) async fn metrics(&self) -> Page {
        Page::of(self.admin).await
    }

    /// Status and text of a path of its admin interface.
    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        page::get(self.admin, path).await
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        kill_process(pid.expect("it runs"), signal).expect("it can be told");
    }

    /// Another configuration for the next reload.
    pub(crate) fn rewrite(&self, change: impl FnOnce(String) -> String) {
        let text = std::fs::read_to_string(&self.file).expect("it is there");
        std::fs::write(&self.file, change(text)).expect("it can be written");
    }

    /// Waits until it has ended; its exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let status = timeout(TOO_LONG, self.child.wait()).await.expect("it ends in time");
        status.expect("it can be waited for").code()
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().expect("nobody panics here").clone()
    }

    /// Resident memory in KiB: now, and the most that it ever was.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let pid = self.child.id().expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let value = |name: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(name));
            let word = rest.and_then(|rest| rest.split_whitespace().next());
            word.and_then(|word| word.parse().ok()).expect("the system says it")
        };
        (value("VmRSS:"), value("VmHWM:"))
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// The command that was built with the tests; by hand, another one: `ONUS_BINARY`.
fn binary() -> OsString {
    std::env::var_os("ONUS_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_onus").into())
}

/// Waits until something holds; a test that waits for longer has failed.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(TOO_LONG, wait).await.is_ok(), "in time: {what}");
}

/// An address that nobody listens at.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it is bound")
}

const TOO_LONG: Duration = Duration::from_secs(60);
