//! Copies of a store in use, and files of other versions.

use std::fs;

use redb::{Database, ReadableDatabase, TableDefinition};
use serde_json::{Value, json};

use super::levers::succeeds;
use super::server::{Folder, Server, onus, until};

/// A report of so many calls.
fn report(server: &Server, sequence: u64) {
    let report = json!({
        "schema_version": 1, "service": "checkout", "instance": "1", "sequence": sequence, "at": 0,
        "edges": [{"callee": "payments", "procedure": "/pay",
                   "counts": {"calls_ok": 5, "calls_failed": 1}}],
    });
    let (status, text) = server.post("/api/v1/reports", &report.to_string());
    assert_eq!(status, 200, "{text}");
}

fn calls(server: &Server) -> u64 {
    let page = succeeds(&server.onus(&["edges", "-o", "json"]));
    let page: Value = serde_json::from_str(&page).expect("it is JSON");
    page["edges"][0]["counts"]["calls_ok"].as_u64().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_taken_under_way_is_gone_back_to_after_a_kill() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let copy = folder.path().join("copy.redb");
    let shown = copy.display().to_string();
    (1..=10).for_each(|number| report(&server, number));
    // Reports are stored while the copy is made.
    std::thread::scope(|threads| {
        threads.spawn(|| (11..=40).for_each(|number| report(&server, number)));
        let told = succeeds(&server.onus(&["analysis", "backup", &shown]));
        assert!(told.contains(" bytes are in "), "{told}");
    });
    assert_eq!(calls(&server), 200);
    server.kill();
    let left: Vec<_> = fs::read_dir(folder.path().join("data"))
        .expect("it is there")
        .map(|file| file.expect("it is read").file_name())
        .filter(|name| name.to_string_lossy().contains("backup"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    fs::copy(&copy, folder.path().join("data/analysis.redb")).expect("it is put back");
    let server = Server::start(&folder, "127.0.0.1:0", "");
    assert_eq!(server.get("/readyz").0, 200);
    let restored = calls(&server);
    assert!((50..=200).contains(&restored) && restored.is_multiple_of(5), "{restored}");
    // What the copy lacks is not made up, and is seen.
    report(&server, 41);
    assert_eq!(calls(&server), restored + 5);
    let lost = 40 - restored / 5;
    let metrics = server.get("/metrics").1;
    assert!(metrics.contains(&format!("onus_analysis_lost_reports_total {lost}\n")), "{metrics}");

    // A copy that cannot be had leaves the one that is there.
    let before = fs::read(&copy).expect("it is read");
    let url = server.url.clone();
    server.kill();
    let refused = onus(&["analysis", "backup", &shown, "--analysis", &url]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(fs::read(&copy).expect("it is read") == before);
    assert!(!folder.path().join("copy.redb.new").exists());
}

#[tokio::test]
async fn a_copy_is_for_administrators() {
    let folder = Folder::new();
    let server = super::refused::guarded(&folder);
    for (who, status) in [("nobody", 401), ("viewer", 403), ("operator", 403)] {
        let (got, text) = server.get_as(super::refused::token(who), "/api/v1/backup");
        assert_eq!(got, status, "{who}: {text}");
    }
    let copy = folder.path().join("copy").display().to_string();
    let token = super::refused::token("admin");
    succeeds(&server.onus(&["analysis", "backup", &copy, "--token", token]));
    let refused = server.onus(&["analysis", "backup", &copy, "--token", "wrong-0123456789"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && text.contains("401"), "{text}");
}

#[tokio::test]
async fn a_file_of_an_earlier_version_is_used_and_one_of_a_later_version_left_alone() {
    const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    report(&server, 1);
    server.kill();
    let path = folder.path().join("data/analysis.redb");
    let version = || {
        let database = Database::open(&path).expect("it is opened");
        let read = database.begin_read().expect("it is read");
        let meta = read.open_table(META).expect("it is there");
        meta.get("version").expect("it is read").expect("it is there").value()
    };
    let set = |version: u64| {
        let database = Database::open(&path).expect("it is opened");
        let write = database.begin_write().expect("it is written to");
        let mut meta = write.open_table(META).expect("it is there");
        meta.insert("version", version).expect("it is written");
        drop(meta);
        write.commit().expect("it is written");
    };
    let current = version();
    // The one report is in the log, so that there is no row to change.
    set(1);
    let server = Server::start(&folder, "127.0.0.1:0", "");
    assert_eq!(calls(&server), 5);
    server.kill();
    assert_eq!(version(), current);

    set(current + 1);
    let before = fs::read(&path).expect("it is read");
    let config = folder.path().join("analysis.yaml").display().to_string();
    let refused = onus(&["analysis", "--config", &config, "--listen", "127.0.0.1:0"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    let says = format!(
        "it has version {}, and this onus knows up to {current}; run the onus that wrote it",
        current + 1
    );
    assert!(text.contains(&says), "{text}");
    assert!(fs::read(&path).expect("it is read") == before, "not a byte is another");
}

#[tokio::test(flavor = "multi_thread")]
async fn since_when_an_edge_fails_outlives_the_process() {
    let folder = Folder::new();
    let server = Server::start_with_minute(&folder, "127.0.0.1:0", "2s", "");
    report(&server, 1);
    let since = |server: &Server| -> Option<u64> {
        let now = server.get("/api/v1/now").1;
        let now: Value = serde_json::from_str(super::server::body(&now)).expect("it is JSON");
        now["edges"][0]["failing_since"].as_u64()
    };
    let first = since(&server).expect("it fails");
    let checkpoint = || {
        let edges = server.get("/metrics").1;
        edges.contains("onus_analysis_classes_age_seconds 0.")
    };
    until("a checkpoint is made", async || checkpoint()).await;
    server.kill();
    let server = Server::start_with_minute(&folder, "127.0.0.1:0", "1h", "");
    assert_eq!(since(&server), Some(first));
}
