//! The peer: a real Prometheus with series that were made for it.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, thread};

/// A server that runs until it is dropped.
pub(super) struct Prometheus {
    process: Child,
    folder: PathBuf,
    pub(super) url: String,
}

impl Prometheus {
    /// A server with these series; where there is none `test` is skipped, unless it must not be.
    pub(super) fn of(test: &str, series: &Series) -> Option<Self> {
        let bin =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/prometheus/usr/bin");
        if !bin.join("prometheus").exists() {
            let required = env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
            assert!(!required, "{test} needs Prometheus: run `cargo xtask setup`");
            // Not by `println!`, which is shown of failed tests only.
            let _ = writeln!(
                io::stderr(),
                "skipped: {test} needs Prometheus: `cargo xtask setup` has it"
            );
            return None;
        }
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("prometheus-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(folder.join("data")).expect("a folder for it");
        fs::write(folder.join("series.om"), series.text()).expect("its series");
        fs::write(folder.join("prometheus.yml"), "global: {}\n").expect("its configuration");
        let promtool = Command::new(bin.join("promtool"))
            .args(["tsdb", "create-blocks-from", "openmetrics", "series.om", "data"])
            .current_dir(&folder)
            .output()
            .expect("promtool runs");
        assert!(promtool.status.success(), "{promtool:?}");
        // Somebody else may take the port before the server does.
        let server = (0..5).find_map(|_| Self::start(&bin.join("prometheus"), &folder));
        Some(server.expect("it starts"))
    }

    fn start(program: &Path, folder: &Path) -> Option<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it has one");
        drop(listener);
        let mut process = Command::new(program)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .args(["--storage.tsdb.retention.time=99y", "--log.level=info"])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let stderr = process.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines();
        let ready = lines.by_ref().any(|line| {
            line.is_ok_and(|line| line.contains("Server is ready to receive web requests"))
        });
        let url = format!("http://{address}");
        let server = Self { process, folder: folder.to_owned(), url };
        if !ready {
            // The folder is for the next attempt.
            let mut server = server;
            server.folder.clear();
            return None;
        }
        // What is not read would stop it some day.
        thread::spawn(move || lines.for_each(drop));
        Some(server)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !self.folder.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Counters that grow evenly over the hour before [`AT`]: names, labels, and by how much.
#[derive(Default)]
pub(super) struct Series(Vec<(String, String, f64)>);

impl Series {
    /// A counter, without `_total`, that grows by so much within the hour.
    pub(super) fn counter(&mut self, name: &str, labels: &str, increase: f64) {
        self.0.push((name.to_owned(), labels.to_owned(), increase));
    }

    /// As OpenMetrics has it: the samples of a metric stand together.
    fn text(&self) -> String {
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
        let mut text = String::new();
        for of_metric in sorted.chunk_by(|one, other| one.0 == other.0) {
            let name = &of_metric[0].0;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# TYPE {name} counter");
            for (_, labels, increase) in of_metric {
                for minute in 0..=60_u32 {
                    let value = increase * f64::from(minute) / 60.0;
                    let at = AT - 3600 + u64::from(minute) * 60;
                    let _ = writeln!(text, "{name}_total{{{labels}}} {value} {at}");
                }
            }
        }
        text + "# EOF\n"
    }
}

/// The moment at which tests ask.
pub(super) const AT: u64 = 1_796_040_000;
