//! The analysis as a child process.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
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
        Self::start_with_minute(folder, listen, "1s", more)
    }

    /// The same with a minute of another length.
    pub(crate) fn start_with_minute(
        folder: &Folder,
        listen: &str,
        minute: &str,
        more: &str,
    ) -> Self {
        let config = folder.path().join("analysis.yaml");
        let data = folder.path().join("data");
        let text = format!("data: {}\nminute: {minute}\n{more}", data.display());
        fs::write(&config, text).expect("the configuration is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
        command.args(["analysis", "--listen", listen, "--config"]).arg(&config);
        Self::spawn(command)
    }

    /// Starts it where no file may grow beyond so many blocks of 512 bytes.
    pub(crate) fn start_below(folder: &Folder, blocks: u64) -> Self {
        let mut command = Command::new("sh");
        let script = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
        command.args(["-c", script, "sh", &blocks.to_string(), env!("CARGO_BIN_EXE_onus")]);
        command.args(["analysis", "--listen", "127.0.0.1:0", "--config"]);
        command.arg(folder.path().join("analysis.yaml"));
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        command.env_remove("RUST_LOG").stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
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

    /// Status and whole text of an answer, as a plain client gets it.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask_as("", "GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> (u16, String) {
        self.ask_as("", "POST", path, body)
    }

    pub(crate) fn get_as(&self, token: &str, path: &str) -> (u16, String) {
        self.ask_as(token, "GET", path, "")
    }

    pub(crate) fn post_as(&self, token: &str, path: &str, body: &str) -> (u16, String) {
        self.ask_as(token, "POST", path, body)
    }

    pub(crate) fn ask_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, String) {
        ask(&self.url, token, method, path, body)
    }

    pub(crate) fn onus(&self, arguments: &[&str]) -> Output {
        command(arguments).env("ONUS_ANALYSIS", &self.url).output().expect("the command runs")
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    // As in a container, where nobody has set USER.
    command.env_remove("RUST_LOG").env_remove("USER").env("COLUMNS", "200").args(arguments);
    command
}

/// The command on its own.
pub(crate) fn onus(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command runs")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and whole text of an answer, as a plain client gets it.
pub(crate) fn ask(url: &str, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let authorization = match token {
        "" => String::new(),
        token => format!("authorization: Bearer {token}\r\n"),
    };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{authorization}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    // A body that is refused by its length may find the connection closed.
    let _ = stream.write_all((head + body).as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("there is a status"), text)
}

/// The body of an answer that came whole.
pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
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
