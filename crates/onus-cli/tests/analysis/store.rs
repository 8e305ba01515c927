//! A store that cannot be read, and one that cannot be written.

use std::fs;

use onus::EdgeClass;
use onus::report::Analysis;
use serde_json::{Value, json};

use super::server::{Folder, Server, until};
use super::service::{Broken, Service};
use super::whole::class;

/// A report of 1,000 edges with long names.
fn crowd(sequence: u64) -> String {
    let name = "long".repeat(40);
    let edges: Vec<_> = (0..1_000)
        .map(|edge| {
            let procedure = format!("/{name}/{sequence}/{edge}");
            json!({"callee": "crowd", "procedure": procedure, "counts": {"calls_ok": 1}})
        })
        .collect();
    let report = json!({
        "schema_version": 1, "service": "crowd", "instance": "1", "sequence": sequence, "at": 0,
        "edges": edges,
    });
    report.to_string()
}

async fn learn(server: &Server) -> Service {
    let service = Service::start("checkout", Analysis::at(&server.url));
    for _ in 0..30 {
        service.serve(Broken::Recs).await;
    }
    until("the class comes back", async || class(&service, "recs") == Some(EdgeClass::FailOpen))
        .await;
    service
}

#[tokio::test]
async fn the_last_classes_are_served_from_a_damaged_store() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let service = learn(&server).await;
    drop(service);
    server.kill();
    let file = folder.path().join("data/analysis.redb");
    let whole = fs::read(&file).expect("the store is read");
    let mut zeros_in_pages = whole.clone();
    for page in zeros_in_pages.chunks_mut(4096).skip(1) {
        page.fill(0xff);
    }
    // As a disk that forgets: the name of the service, wherever it stands.
    let mut bits_of_names = whole.clone();
    let names = whole.windows(8).enumerate().filter(|(_, bytes)| bytes == b"checkout");
    names.for_each(|(at, _)| bits_of_names[at] ^= 1);
    assert!(bits_of_names != whole);
    for (what, damaged) in [
        ("a bit of a name", bits_of_names),
        ("text", b"no database".repeat(1_000)),
        ("half of it", whole[..whole.len() / 2].to_vec()),
        ("every page but the first", zeros_in_pages),
    ] {
        fs::write(&file, damaged).expect("the store is damaged");
        let server = Server::start(&folder, "127.0.0.1:0", "");
        let (status, text) = server.get("/readyz");
        assert_eq!(status, 503, "{what}: {text}");
        assert!(
            text.contains("urn:onus:problem:store-broken") && text.contains("analysis.redb"),
            "{what}: {text}"
        );
        let next = Service::start("checkout", Analysis::at(&server.url));
        next.serve(Broken::Nothing).await;
        until("the last classes are served", async || {
            class(&next, "recs") == Some(EdgeClass::FailOpen)
        })
        .await;
    }
    // A good file in its place is used without a restart.
    let server = Server::start(&folder, "127.0.0.1:0", "");
    fs::write(&file, &whole).expect("a backup is put in its place");
    until("it is ready", async || server.get("/readyz").0 == 200).await;
    let edges = server.onus(&["edges", "--callee", "recs", "-o", "json"]);
    assert!(String::from_utf8_lossy(&edges.stdout).contains("\"alone_caller_ok\": 30"));
}

#[tokio::test]
async fn a_full_disk_is_told_and_loses_nothing_acknowledged() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let service = learn(&server).await;
    service.reporter.finish().await;
    server.kill();
    let file = folder.path().join("data/analysis.redb");
    let size = fs::metadata(&file).expect("the store is there").len();
    // Files may grow little further, as on a disk that is nearly full.
    let server = Server::start_below(&folder, size / 512 + 2_048);
    let mut stored = 0;
    let refused = loop {
        let (status, text) = server.post("/api/v1/reports", &crowd(stored + 1));
        if status != 200 {
            break (status, text);
        }
        stored += 1;
        assert!(stored < 100, "files do not grow without end");
    };
    assert_eq!(refused.0, 503, "{}", refused.1);
    assert!(refused.1.contains("urn:onus:problem:store-broken"), "{}", refused.1);
    assert!(stored > 0);
    let (status, text) = server.get("/readyz");
    assert_eq!(status, 503, "{text}");
    // What is known is still told.
    let next = Service::start("checkout", Analysis::at(&server.url));
    next.serve(Broken::Nothing).await;
    until("the last classes are served", async || {
        class(&next, "recs") == Some(EdgeClass::FailOpen)
    })
    .await;
    server.kill();

    let server = Server::start(&folder, "127.0.0.1:0", "");
    let counted = || {
        let edges = server.onus(&["edges", "--caller", "crowd", "-o", "json"]);
        let page: Value = serde_json::from_slice(&edges.stdout).expect("it is JSON");
        page["edges"].as_array().expect("a list").len() as u64
    };
    // The report that was refused may be on disk all the same; it is counted once.
    let before = counted();
    assert!((stored * 1_000..=(stored + 1) * 1_000).contains(&before), "{before} of {stored}");
    assert_eq!(server.post("/api/v1/reports", &crowd(stored + 1)).0, 200);
    assert_eq!(counted(), (stored + 1) * 1_000);
}
