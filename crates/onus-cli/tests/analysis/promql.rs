//! Real PromQL stores that scrape the agents, and an analysis that reads them back.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use onus::report::Analysis;
use onus::{Onus, RetryPolicy};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::restarts::free_address;
use super::server::{Folder, Server, ask, body, until};
use super::service::{Broken, Service};
use super::shards::{self, callers, document};

/// A program of the system or of `cargo xtask setup`; where it is not there `test` is skipped,
/// unless it must not be.
fn peer(test: &str, program: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([root.join("target/peers/bin")]);
    let found = folders.map(|folder| folder.join(program)).find(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
        assert!(!required, "{test} needs {program}: run `cargo xtask setup --system`");
        // Not by `println!`, which is shown of failed tests only.
        let _ =
            writeln!(io::stderr(), "skipped: {test} needs {program}: `cargo xtask setup` names it");
    }
    found
}

/// A store that runs, and ends with the test.
struct Store {
    child: Child,
    url: String,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Store {
    /// A store that scrapes these; it keeps no series whose name matches `dropped`.
    fn start(
        name: &str,
        program: &Path,
        folder: &Folder,
        targets: &[SocketAddr],
        dropped: &str,
    ) -> Self {
        let address = free_address();
        let scrape = folder.path().join(format!("{name}.yaml"));
        let targets: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        let text = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: onus\n  static_configs: [{{targets: [{}]}}]\n  \
             metric_relabel_configs: [{{source_labels: [__name__], regex: \"{dropped}\", action: drop}}]\n",
            targets.join(",")
        );
        fs::write(&scrape, text).expect("the configuration is written");
        let data = folder.path().join(name);
        let [scrape, data] = [scrape, data].map(|path| path.display().to_string());
        let mut command = Command::new(program);
        match name {
            "prometheus" => command.args([
                format!("--config.file={scrape}"),
                format!("--storage.tsdb.path={data}"),
                format!("--web.listen-address={address}"),
            ]),
            _ => command.args([
                format!("-promscrape.config={scrape}"),
                format!("-storageDataPath={data}"),
                format!("-httpListenAddr={address}"),
                // It holds the last 30 s back otherwise, which `delay` is for.
                "-search.latencyOffset=0s".to_owned(),
            ]),
        };
        let child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn();
        Self { child: child.expect("the store runs"), url: format!("http://{address}") }
    }
}

/// One of several processes of a service, and what scrapes it.
struct Replica {
    service: Service,
    serving: JoinHandle<()>,
}

impl Replica {
    async fn start(name: &str, address: SocketAddr) -> Self {
        let onus = Onus::builder(name)
            .retry("payments", RetryPolicy::attempts(2).no_budget())
            .build()
            .expect("the service is configured");
        let listener = TcpListener::bind(address).await.expect("the address is free");
        let routes = axum::Router::new().fallback_service(onus.admin());
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        // It reports to nobody: a store scrapes it.
        let nobody = Analysis::at("http://127.0.0.1:1");
        let reporter = onus.report_to(nobody).expect("the analysis is configured");
        Self { service: Service { onus, reporter }, serving }
    }

    /// Failures of `recs` alone: how many, and in how many the service failed too. One in five of
    /// the requests fails by the service's own doing.
    async fn serve(&self, requests: u32, counted: &mut (u64, u64)) {
        for number in 0..requests {
            let broken = if number % 5 == 0 { Broken::RecsAndItself } else { Broken::Recs };
            self.service.serve(broken).await;
            counted.0 += 1;
            counted.1 += u64::from(number % 5 == 0);
        }
    }
}

/// Isolated failures of `recs`, and those of the service too, as the analysis has counted them.
fn counted(server: &Server) -> (u64, u64) {
    let (_, text) = server.get("/api/v1/edges?callee=recs");
    let page: Value = serde_json::from_str(body(&text)).expect("it is JSON");
    let count = |name: &str| page["edges"][0]["counts"][name].as_u64().unwrap_or(0);
    let both = count("alone_caller_failed");
    (count("alone_caller_ok") + both, both)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_of_which_one_restarts_are_read_back_from_real_stores() {
    let test = "three_replicas_of_which_one_restarts_are_read_back_from_real_stores";
    let (Some(prometheus), Some(victoria)) =
        (peer(test, "prometheus"), peer(test, "victoria-metrics"))
    else {
        return;
    };
    let addresses = [free_address(), free_address(), free_address()];
    let mut replicas = Vec::new();
    for address in addresses {
        replicas.push(Replica::start("checkout", address).await);
    }
    // All series are there at zero before anything is counted.
    for replica in &replicas {
        replica.service.serve(Broken::Nothing).await;
    }
    let folders = [Folder::new(), Folder::new()];
    let stores = [("prometheus", prometheus), ("victoria-metrics", victoria)];
    let stores: Vec<Store> = stores
        .iter()
        .zip(&folders)
        .map(|((name, program), folder)| Store::start(name, program, folder, &addresses, "nothing"))
        .collect();
    let servers: Vec<Server> = stores
        .iter()
        .zip(&folders)
        .map(|(store, folder)| {
            let more = format!("promql: {{url: \"{}\", delay: 3s}}\nlimits: {{}}\n", store.url);
            Server::start_with_minute(folder, "127.0.0.1:0", "5s", &more)
        })
        .collect();
    for store in &stores {
        // Six series of each replica, all at zero.
        let query = "/api/v1/query?query=count(onus_edge_requests_total%7Bcallee=%22recs%22%7D)";
        until("the replicas are scraped", async || {
            let connected = std::net::TcpStream::connect(store.url.trim_start_matches("http://"));
            connected.is_ok() && ask(&store.url, "", "GET", query, "").1.contains("\"18\"")
        })
        .await;
    }

    let mut truth = (0, 0);
    for round in 0..12 {
        for replica in &replicas {
            replica.serve(20, &mut truth).await;
        }
        // Scrapes see the counts rise, as in a service that runs.
        tokio::time::sleep(Duration::from_millis(500)).await;
        if round == 6 {
            let old = replicas.pop().expect("there are three");
            old.serving.abort();
            let _ = old.serving.await;
            replicas.push(Replica::start("checkout", addresses[2]).await);
            replicas[2].service.serve(Broken::Nothing).await;
        }
    }
    let ratio = |(n, k): (u64, u64)| k as f64 / n as f64;
    for (server, store) in servers.iter().zip(["prometheus", "victoria-metrics"]) {
        // A scrape that the restart has cut off, and what a store guesses between scrapes.
        let near = |count: u64| count as f64 > truth.0 as f64 * 0.85;
        until("most is read back", async || near(counted(server).0)).await;
        let found = counted(server);
        assert!((found.0 as f64) < truth.0 as f64 * 1.1, "{store}: {found:?} of {truth:?}");
        let off = (ratio(found) - ratio(truth)).abs();
        assert!(off < 0.01, "{store}: {found:?} of {truth:?}: P is off by {off}");
    }
    // What is read back becomes a class as well: one in five is the border of fail-open.
    let explained = servers[0].onus(&["explain", "checkout", "recs"]);
    assert!(String::from_utf8_lossy(&explained.stdout).contains("isolated failures"));
    // The first minute of an incident without the analysis, from the store.
    let now = Command::new(env!("CARGO_BIN_EXE_onus"))
        .env("ONUS_ANALYSIS", "http://127.0.0.1:1")
        .args(["now", "-o", "json", "--promql", &stores[0].url])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&now.stdout).into_owned();
    let figures: Value = serde_json::from_str(&text).unwrap_or_default();
    assert_eq!(figures["culprits"][0]["service"], "recs", "{text}{now:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_analyses_read_their_callers_from_a_store_and_say_what_it_lacks() {
    let test = "two_analyses_read_their_callers_from_a_store_and_say_what_it_lacks";
    let Some(prometheus) = peer(test, "prometheus") else { return };
    let addresses = [free_address(), free_address()];
    // By the hash of their names the one belongs to the first analysis, the other to the second.
    let replicas =
        [Replica::start("front", addresses[0]).await, Replica::start("cart", addresses[1]).await];
    for replica in &replicas {
        replica.service.serve(Broken::Nothing).await;
    }
    let folders = [Folder::new(), Folder::new()];
    let lacking = [Folder::new(), Folder::new()];
    let dropped = "onus_(retry_policy_info|mode|calls_total)";
    let rich = Store::start("prometheus", &prometheus, &folders[0], &addresses, "nothing");
    let poor = Store::start("prometheus", &prometheus, &lacking[0], &addresses, dropped);
    for store in [&rich, &poor] {
        let query = "/api/v1/query?query=count(onus_edge_requests_total)";
        until("the services are scraped", async || {
            let connected = std::net::TcpStream::connect(store.url.trim_start_matches("http://"));
            connected.is_ok() && ask(&store.url, "", "GET", query, "").1.contains("\"24\"")
        })
        .await;
    }
    let promql = |store: &Store| format!("promql: {{url: \"{}\", delay: 3s}}\n", store.url);
    let [one, two] = shards::start(&folders, "5s", &promql(&rich));
    let three = Server::start_with_minute(&lacking[1], "127.0.0.1:0", "5s", &promql(&poor));
    let both = [String::from("cart"), String::from("front")];
    until("both callers are read back", async || {
        for replica in &replicas {
            for _ in 0..10 {
                replica.service.serve(Broken::Payments).await;
            }
        }
        let read = |server| {
            let edges = document(server, &["edges", "--callee", "payments", "-o", "json"]);
            let failed = edges["edges"].as_array().expect("a list").iter();
            let failed =
                failed.filter(|edge| edge["counts"]["alone_caller_failed"].as_u64() > Some(0));
            (callers(&edges) == both && failed.count() == 2).then_some(edges)
        };
        read(&one).is_some_and(|edges| edges.get("missing").is_none()) && read(&three).is_some()
    })
    .await;

    let edges = document(&two, &["edges", "--callee", "payments", "-o", "json"]);
    for edge in edges["edges"].as_array().expect("a list") {
        let count = |name: &str| edge["counts"][name].as_u64().unwrap_or(0);
        assert_eq!(edge["policy"]["attempts"], 2, "{edge}");
        assert!(count("calls_failed") > 0 && count("retries") > 0, "{edge}");
    }
    let radius = document(&one, &["radius", "-o", "json"]);
    let roots = radius["services"].as_array().expect("a list");
    assert_eq!(roots.len(), 2, "{radius}");
    assert!(roots.iter().all(|root| root["now"]["amplification"] == 2.0), "{radius}");
    let graph = document(&two, &["graph", "-o", "json"]);
    let known = graph["services"].as_array().expect("a list").iter();
    assert_eq!(known.filter(|service| service[1] == "observing").count(), 2, "{graph}");
    let incident = document(&two, &["report", "-o", "json"]);
    assert_eq!(incident["origin"], "payments", "{incident}");
    assert_eq!(incident["roots"].as_array().map(Vec::len), Some(2), "{incident}");
    let found = document(&one, &["check", "--ready", "cart", "-o", "json"]);
    let judged = |evidence: &str| {
        let findings = found["findings"].as_array().expect("a list").iter();
        findings
            .filter(|it| it["evidence"] == evidence)
            .map(|it| it["ok"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(judged("correlation"), [Value::Bool(true)], "{found}");
    assert_eq!(judged("policy"), [Value::Null; 0], "{found}");

    // What the other store lacks is said with each figure.
    let radius = document(&three, &["radius", "-o", "json"]);
    let missing: Vec<_> =
        radius["missing"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(missing.len(), 3, "{radius}");
    for (what, says) in missing.iter().zip([
        "calls, retries and suppressions of",
        "modes of 2 services, which count as without Onus",
        "retry policies of",
    ]) {
        assert!(what.starts_with(says), "{what}");
    }
    let check = three.onus(&["check", "--ready", "cart"]);
    let text = String::from_utf8_lossy(&check.stderr).into_owned();
    assert_eq!(check.status.code(), Some(3), "{text}");
    assert!(
        text.contains("policy of cart") && text.contains("note: not in these figures"),
        "{text}"
    );
}

#[test]
fn the_shipped_rules_do_what_their_tests_say() {
    let Some(promtool) = peer("the_shipped_rules_do_what_their_tests_say", "promtool") else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus");
    for arguments in
        [["check", "rules", "onus-rules.yaml"], ["test", "rules", "onus-rules.test.yaml"]]
    {
        let mut command = Command::new(&promtool);
        let output = command.args(arguments).current_dir(&folder).output().expect("it runs");
        let text =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
        assert!(output.status.success(), "{arguments:?}: {}", text.concat());
    }
}
