//! The analysis as a child process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A folder of its own for a test, gone with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("the folder is made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running `onus analysis`.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Starts it with its store in `folder`, a minute of one second, and whatever else `more` says.
    pub(crate) fn start(folder: &Folder, listen: &str, more: &str) -> Self {
        let config = folder.path().join("analysis.yaml");
        let data = folder.path().join("data");
        let text = format!("data: {}\nminute: 1s\n{more}", data.display());
        fs::write(&config, text).expect("the configuration is written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_onus"))
            .env_remove("RUST_LOG")
            .args(["analysis", "--listen", listen, "--config"])
            .arg(&config)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("listening on ")?.1.to_owned()))
            .expect("it says where it listens");
        // Whoever writes to a pipe that nobody reads stops.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    /// As `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ends");
    }

    pub(crate) fn onus(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
        command.env_remove("RUST_LOG").env("COLUMNS", "200").env("ONUS_ANALYSIS", &self.url);
        command.args(arguments).output().expect("the command runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds; a test that waits for longer than a minute has failed.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), wait).await;
    assert!(in_time.is_ok(), "within a minute: {what}");
}
