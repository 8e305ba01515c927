//! What people and tools read of a mesh: the chain A → B → C → D, two attempts at each hop, all
//! enforcing, in which D has failed every request.

use std::io::BufReader;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::server::{Folder, Server, until};

/// 100 requests: C alone retries, B and A are stopped by its claim.
pub(crate) fn chain(server: &Server) {
    let hop = |callee: &str, retries: u64, suppressed: u64| {
        json!([{
            "caller_procedure": "GET /", "callee": callee, "procedure": "GET /",
            "policy": {"attempts": 2},
            "counts": {
                "calls_failed": 100, "alone_caller_failed": 100, "retries": retries,
                "retries_claimed": retries, "suppressed": suppressed, "probes": suppressed,
            },
        }])
    };
    for (service, edges, own) in [
        ("a", hop("b", 0, 100), 0),
        ("b", hop("c", 0, 100), 0),
        ("c", hop("d", 100, 0), 0),
        ("d", json!([]), 200),
    ] {
        let report = json!({
            "schema_version": 1, "service": service, "instance": "1", "sequence": 1, "at": 0,
            "facts": {"mode": "enforce", "enforce_percent": 100},
            "edges": edges,
            "procedures": [{"procedure": "GET /", "counts": {"failed": 100, "claims_own": own}}],
        });
        let (status, text) = server.post("/api/v1/reports", &report.to_string());
        assert_eq!(status, 200, "{text}");
    }
}

fn text(server: &Server, status: i32, arguments: &[&str]) -> String {
    let output = server.onus(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {out}{err}");
    out + &err
}

fn document(server: &Server, arguments: &[&str]) -> Value {
    let text = text(server, 0, arguments);
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(document["schema_version"], 1, "{text}");
    document
}

#[tokio::test]
async fn a_storm_that_did_not_happen_is_told_in_every_form() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    chain(&server);
    let now = document(&server, &["now", "-o", "json"]);
    assert_eq!(now["culprits"][0]["service"], "d", "{now}");
    let top = text(&server, 0, &["top", "-n", "1"]);
    assert!(top.contains("\u{2192}") && top.lines().count() == 2, "{top}");
    until("classes are learnt", async || {
        server.get("/api/v1/edges").1.contains("\"class\":\"fail-close\"")
    })
    .await;

    let radius = document(&server, &["radius", "-o", "json"]);
    let services = radius["services"].as_array().expect("a list");
    assert_eq!(services.len(), 1, "only A is called by nobody");
    let storm = |of: &str| {
        let storm = &services[0][of];
        (storm["radius"].as_u64(), storm["amplification"].as_f64())
    };
    assert_eq!(storm("without"), (Some(3), Some(8.0)));
    assert_eq!(storm("now"), (Some(1), Some(2.0)));
    let table = text(&server, 0, &["radius", "a"]);
    assert!(table.contains("maximum 3 \u{2192} 1, mean 3.0 \u{2192} 1.0"), "{table}");
    text(&server, 2, &["radius", "nobody"]);

    for (format, says) in [
        ("dot", "\"c\" -> \"d\" [label=\"fail-close \u{d7}2\"];"),
        ("mermaid", "-->|\"fail-close x2\"|"),
        ("json", "\"enforcing\""),
    ] {
        let graph = text(&server, 0, &["graph", "-o", format]);
        assert!(graph.contains(says), "{graph}");
    }

    let incident = document(&server, &["report", "-o", "json"]);
    assert_eq!(incident["origin"], "d");
    assert_eq!(incident["direct"], 200.0, "one retry of each suppressed call");
    let root = &incident["roots"][0];
    assert_eq!(root["path"], json!(["a", "b", "c", "d"]));
    // 1 + 2 + 4 + 8 requests for one, of which 5 were made.
    assert_eq!(root["prevented"]["mixture"], 1000.0, "{root}");
    assert_eq!(incident["false_suppression"]["tried"], 200);
    let markdown = text(&server, 0, &["report"]);
    assert!(
        markdown.contains("| Origin | d |")
            && markdown.contains("a \u{2192} b \u{2192} c \u{2192} d"),
        "{markdown}"
    );
    let html = text(&server, 0, &["report", "-o", "html"]);
    assert!(
        html.starts_with("<!doctype html>") && html.contains("a \u{2192} b \u{2192} c \u{2192} d"),
        "{html}"
    );
    let earlier = document(&server, &["report", "--since", "1h", "--until", "2h", "-o", "json"]);
    assert_eq!(earlier["minutes"], json!([]));

    let check = text(&server, 3, &["check", "--ready", "c"]);
    assert!(check.contains("missing: false-suppression of c"), "{check}");
    text(&server, 0, &["check", "--ready", "a -> b"]);
    text(&server, 0, &["check", "--ready", "c", "--accept", "false-suppression"]);
    text(&server, 2, &["check", "--ready", "nobody"]);
}

#[tokio::test]
async fn a_window_has_what_went_wrong_in_it_and_no_more() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    chain(&server);
    let well = json!({
        "schema_version": 1, "service": "well", "instance": "1", "sequence": 1, "at": 0,
        "edges": [{"callee": "cache", "procedure": "GET /", "counts": {"calls_ok": 9}}],
    });
    assert_eq!(server.post("/api/v1/reports", &well.to_string()).0, 200);
    // A checkpoint writes the minutes down that are worth keeping.
    until("quiet minutes are forgotten", async || {
        document(&server, &["edges", "--since", "1h", "-o", "json"])["edges"]
            .as_array()
            .is_some_and(|edges| edges.len() == 3)
    })
    .await;
    assert_eq!(
        document(&server, &["edges", "-o", "json"])["edges"].as_array().map(Vec::len),
        Some(4)
    );
    let edges = document(&server, &["edges", "--since", "1h", "--caller", "c", "-o", "json"]);
    let edge = &edges["edges"][0];
    assert_eq!(
        (&edge["recent"]["calls_failed"], &edge["recent_seconds"]),
        (&100.into(), &60.0.into())
    );
    let table = text(&server, 0, &["edges", "--since", "1h", "--caller", "c"]);
    assert!(table.contains(" 1.00 "), "k of n in the window: {table}");
    let top = text(&server, 0, &["top", "--since", "1h", "--caller", "c"]);
    assert!(
        top.contains("1.7/s") && top.contains("3.3/s"),
        "100 calls, 200 attempts a minute: {top}"
    );
    let explained = text(&server, 0, &["explain", "c", "d", "--since", "1h"]);
    assert!(explained.contains("100 with 200 attempts"), "{explained}");
    let earlier = ["--since", "1h", "--until", "2h"];
    let edges = document(&server, &[&["edges", "-o", "json"], &earlier[..]].concat());
    assert_eq!(edges["edges"], json!([]));
    let refused = text(&server, 2, &[&["explain", "c", "d"], &earlier[..]].concat());
    assert!(refused.contains("no call of d that went wrong then"), "{refused}");
    text(&server, 2, &["edges", "--until", "1h"]);
    let refused = text(&server, 1, &["edges", "--since", "2d"]);
    assert!(refused.contains("at most a day apart"), "{refused}");
}

#[test]
fn watching_shows_one_document_after_another() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    chain(&server);
    for arguments in [&["edges"][..], &["top"], &["explain", "c", "d"], &["radius"], &["now"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
        command.env("ONUS_ANALYSIS", &server.url).args(arguments);
        command.args(["--watch", "-o", "json"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        let documents = serde_json::Deserializer::from_reader(out).into_iter::<Value>().take(2);
        let versions: Vec<_> =
            documents.map(|it| it.expect("it is JSON")["schema_version"].clone()).collect();
        child.kill().expect("it runs until it is stopped");
        child.wait().expect("it ends");
        assert_eq!(versions, [1, 1], "{arguments:?}");
    }
}
