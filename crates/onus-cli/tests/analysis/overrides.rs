//! Overrides, by request and by file: whose word holds, from when and until when.

use std::fs;
use std::time::Duration;

use onus::EdgeClass;
use onus::report::Analysis;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::levers::succeeds;
use super::server::{Folder, Server, body, until};
use super::service::{Broken, Service};
use super::whole::class;

fn set(server: &Server, class: &str, seconds: u32) -> (u16, String) {
    let request = json!({
        "caller": "checkout", "callee": "recs", "class": class, "owner": "alice",
        "reason": "a hidden need", "ticket": "T-1", "for_seconds": seconds,
    });
    server.post("/api/v1/overrides", &request.to_string())
}

/// The lines of the audit log, the oldest first: who, what, and of what class.
fn audit(server: &Server) -> Vec<(String, String, String)> {
    let (_, text) = server.get("/api/v1/audit");
    let audit: Value = serde_json::from_str(body(&text)).expect("it is JSON");
    let entries = audit["entries"].as_array().expect("a list");
    let of = |entry: &Value, name: &str| entry[name].as_str().expect("a text").to_owned();
    let class = |entry: &Value| of(entry, "detail").split(' ').next().unwrap_or("").to_owned();
    let line = |entry: &Value| (of(entry, "by"), of(entry, "action"), class(entry));
    entries.iter().rev().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_holds_until_it_is_dropped_or_expires() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let service = Service::start("checkout", Analysis::at(&server.url));
    for _ in 0..30 {
        service.serve(Broken::Recs).await;
    }
    let is = async |expected| class(&service, "recs") == Some(expected);
    until("the class is learnt", async || is(EdgeClass::FailOpen).await).await;
    assert_eq!(set(&server, "fail-close", 3600).0, 200);
    until("it is overridden", async || is(EdgeClass::FailClose).await).await;
    let explained = succeeds(&server.onus(&["explain", "checkout", "recs"]));
    assert!(
        explained.contains("fail-close, declared by the operator; measured fail-open"),
        "{explained}"
    );

    let listed = succeeds(&server.onus(&["overrides", "list", "-o", "json"]));
    let orders: Value = serde_json::from_str(&listed).expect("it is JSON");
    let id = orders["overrides"][0]["id"].as_str().expect("it has a name");
    let table = succeeds(&server.onus(&["overrides", "list"]));
    for part in [id, "checkout \u{2192} recs", "fail-close", "59m", "alice", "T-1", "a hidden need"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    succeeds(&server.onus(&["overrides", "drop", id]));
    until("it is dropped", async || is(EdgeClass::FailOpen).await).await;
    let again = server.onus(&["overrides", "drop", id]);
    let text = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.code() == Some(1) && text.contains("there is no override"), "{text}");

    assert_eq!(set(&server, "fail-close", 2).0, 200);
    until("it is overridden again", async || is(EdgeClass::FailClose).await).await;
    until("it expires", async || is(EdgeClass::FailOpen).await).await;
    until("its end is written down", async || audit(&server).len() == 4).await;
    let line = |by: &str, action: &str| (by.to_owned(), action.to_owned(), "fail-close".to_owned());
    let (said, dropped) = (line("anybody", "override-set"), line("anybody", "override-dropped"));
    assert_eq!(audit(&server), [said.clone(), dropped, said, line("expiry", "override-dropped")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_ends_at_its_second_with_the_analysis_and_without_it() {
    let folder = Folder::new();
    let server = Server::start_with_minute(&folder, "127.0.0.1:0", "1h", "");
    let service = Service::start("checkout", Analysis::at(&server.url));
    service.serve(Broken::Nothing).await;
    until("the edge is known", async || server.get("/api/v1/edges").1.contains("recs")).await;
    let is = async |expected| class(&service, "recs") == Some(expected);
    let second = Duration::from_secs(1);
    for seconds in [2, 3] {
        let since = Instant::now();
        assert_eq!(set(&server, "fail-open", seconds).0, 200);
        until("it holds", async || is(EdgeClass::FailOpen).await).await;
        if seconds == 3 {
            break;
        }
        until("it ends", async || is(EdgeClass::Unknown).await).await;
        let took = since.elapsed();
        let after = seconds * second;
        // Not before its time, and not at the next tick, which is an hour away.
        assert!(took + second / 10 >= after && took < after + 5 * second, "{took:?}");
    }
    server.kill();
    let since = Instant::now();
    until("it ends without the analysis", async || is(EdgeClass::Unknown).await).await;
    assert!(since.elapsed() < 8 * second, "{:?}", since.elapsed());
}

fn file(class: &str) -> String {
    format!(
        "overrides:\n- caller: checkout\n  callee: recs\n  class: {class}\n  owner: bob\n  \
         reason: it has a fallback\n  expires: {}\n",
        in_some_months()
    )
}

/// A day some months from now, as it is typed.
#[expect(
    clippy::disallowed_methods,
    reason = "an override ends within a year of the day it is set"
)]
fn in_some_months() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = now.expect("it is after 1970").as_secs() / 86_400 + 180;
    // Any day of that year will do.
    format!("{}-{:02}-01", 1970 + days * 400 / 146_097, (days % 365) / 31 + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_file_holds_and_a_bad_one_changes_nothing() {
    let folder = Folder::new();
    let path = folder.path().join("overrides.yaml");
    let shown = path.display().to_string();
    fs::write(&path, file("fail-open")).expect("it is written");
    let server = Server::start(&folder, "127.0.0.1:0", &format!("overrides: {shown}\n"));
    let classes = |server: &Server| -> Vec<String> {
        let listed = succeeds(&server.onus(&["overrides", "list", "-o", "json"]));
        let orders: Value = serde_json::from_str(&listed).expect("it is JSON");
        let overrides = orders["overrides"].as_array().expect("a list");
        overrides.iter().map(|it| it["class"].as_str().expect("a text").to_owned()).collect()
    };
    let usable = |server: &Server, is: u8| {
        server.get("/metrics").1.contains(&format!("onus_analysis_overrides_file_usable {is}"))
    };
    until("it holds", async || classes(&server) == ["fail-open"]).await;
    let (status, text) = set(&server, "fail-close", 60);
    assert!(status == 422 && text.contains("the overrides file says fail-open"), "{text}");

    fs::write(&path, file("fail-opened")).expect("it is written");
    until("the bad file is noticed", async || usable(&server, 0)).await;
    assert_eq!(classes(&server), ["fail-open"]);
    let checked = server.onus(&["overrides", "diff", &shown]);
    let text = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.code() == Some(2), "{text}");
    assert!(
        text.contains(&format!("{shown}:4:10: class is \"fail-opened\"; allowed is")),
        "{text}"
    );
    // What the last good file said outlives the process that read it.
    server.kill();
    let server = Server::start(&folder, "127.0.0.1:0", &format!("overrides: {shown}\n"));
    until("it is bad still", async || usable(&server, 0)).await;
    assert_eq!(classes(&server), ["fail-open"]);

    // What the next text would change is asked before it is written.
    let next = folder.path().join("next.yaml");
    let next_shown = next.display().to_string();
    fs::write(&next, file("fail-close").replace("recs", "other")).expect("it is written");
    let plan = succeeds(&server.onus(&["overrides", "diff", "--watched", &next_shown]));
    for part in ["+ checkout \u{2192} other: fail-close", "- checkout \u{2192} recs: fail-open"] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    fs::write(&path, file("fail-close")).expect("it is written");
    until("the good one holds", async || classes(&server) == ["fail-close"]).await;
    assert!(usable(&server, 1));
    fs::remove_file(&path).expect("it is removed");
    until("it is missed", async || usable(&server, 0)).await;
    assert_eq!(classes(&server), ["fail-close"]);
    fs::write(&path, "overrides: []").expect("it is written");
    until("none is left", async || classes(&server).is_empty()).await;
    let line = |action: &str, class: &str| (shown.clone(), action.to_owned(), class.to_owned());
    let lines = [
        line("override-set", "fail-open"),
        line("override-set", "fail-close"),
        line("override-dropped", "fail-close"),
    ];
    assert_eq!(audit(&server), lines);
}

#[tokio::test]
async fn a_dry_run_tells_what_the_last_hour_would_have_been() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let report = |service: &str, callee: &str, procedure: &str, counts: Value| {
        let report = json!({
            "schema_version": 1, "service": service, "instance": "1", "sequence": 1, "at": 0,
            "facts": {"mode": "enforce", "enforce_percent": 100},
            "edges": [{"caller_procedure": "GET /", "callee": callee, "procedure": procedure,
                       "policy": {"attempts": 2}, "counts": counts}],
        });
        let (status, text) = server.post("/api/v1/reports", &report.to_string());
        assert_eq!(status, 200, "{text}");
    };
    let suppressed = json!({"calls_failed": 100, "alone_caller_failed": 100, "suppressed": 100});
    report("front", "checkout", "GET /", suppressed);
    let failed = json!({"calls_failed": 120, "alone_caller_failed": 100, "retries": 120,
                        "jointly_caller_failed": 20, "exhausted": 120});
    report("checkout", "recs", "/recs", failed);
    let path = folder.path().join("overrides.yaml");
    let shown = path.display().to_string();
    fs::write(&path, file("fail-open")).expect("it is written");

    let edge = |plan: &str| -> Value {
        let plan: Value = serde_json::from_str(plan).expect("it is JSON");
        assert_eq!(plan["edges_changed"], 1, "{plan}");
        plan["edges"][0].clone()
    };
    let plan = succeeds(&server.onus(&["overrides", "apply", "--dry-run", &shown, "-o", "json"]));
    let planned = edge(&plan);
    assert_eq!((&planned["before"], &planned["after"]), (&json!("unknown"), &json!("fail-open")));
    assert_eq!(planned["claimed"], json!({"least": 100, "most": 120}), "{plan}");
    assert_eq!((&planned["retried"], &planned["suppressed"]), (&json!(120), &json!(0)), "{plan}");
    let text = succeeds(&server.onus(&["overrides", "diff", &shown]));
    for part in ["+ checkout \u{2192} recs: fail-open", "100 to 120", "+120", "Nothing is set."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!server.get("/api/v1/orders").1.contains("fail-open"), "nothing is set");

    let applied = succeeds(&server.onus(&["overrides", "apply", &shown]));
    assert!(applied.contains("They hold"), "{applied}");
    let same = succeeds(&server.onus(&["overrides", "apply", &shown]));
    assert!(same.contains("= checkout \u{2192} recs") && same.contains("0 edges get"), "{same}");
    assert_eq!(audit(&server).len(), 1, "what holds is not said again");
    fs::write(&path, file("unknown")).expect("it is written");
    let back = succeeds(&server.onus(&["overrides", "diff", &shown, "-o", "json"]));
    assert_eq!(edge(&back)["unclaimed"], json!({"least": 100, "most": 120}), "{back}");
    assert_eq!(edge(&back)["suppressed"], 60, "half of the attempts were retries: {back}");

    // Of a file with one mistake nothing is set.
    let request = json!({"overrides": [
        {"caller": "a", "callee": "b", "class": "unknown", "owner": "x", "reason": "y", "for_seconds": 5},
        {"caller": "a", "callee": "c", "class": "unknown", "owner": "", "reason": "y", "for_seconds": 5},
    ]});
    let (status, text) = server.post("/api/v1/overrides/apply", &request.to_string());
    assert!(status == 422 && text.contains("overrides[1]: owner is"), "{text}");
    assert_eq!(audit(&server).len(), 1);
}
