//! What cannot be meant is refused with the reason, and nothing of it is stored.

use std::fs;

use serde_json::{Value, json};

use super::server::{Folder, Server};

/// More procedures than any service has; the fold over reports is tried with a million.
const MANY: u64 = 50_000;

const TOKENS: [(&str, &str); 4] = [
    ("checkout", "checkout-0123456789"),
    ("viewer", "viewer-0123456789"),
    ("operator", "operator-0123456789"),
    ("admin", "admin-0123456789"),
];

pub(crate) fn token(of: &str) -> &'static str {
    TOKENS.iter().find(|(name, _)| *name == of).map_or("", |(_, token)| token)
}

pub(crate) fn guarded(folder: &Folder) -> Server {
    let mut grants =
        String::from("limits: {edges-per-service: 100, report-bytes: 1000000}\ngrants:\n");
    for (name, token) in TOKENS {
        let file = folder.path().join(name);
        fs::write(&file, token).expect("the token is written");
        let (role, services) = match name {
            "checkout" => ("agent", "[checkout, shop/*]"),
            role => (role, "[]"),
        };
        let file = file.display();
        grants += &format!(
            "- {{name: {name}, role: {role}, services: {services}, token-file: {file}}}\n"
        );
    }
    Server::start(folder, "127.0.0.1:0", &grants)
}

fn report(service: &str, sequence: u64) -> Value {
    json!({
        "schema_version": 1, "service": service, "instance": "1", "sequence": sequence, "at": 0,
        "edges": [{"callee": "payments", "procedure": "/pay", "counts": {"calls_ok": 1}}],
    })
}

/// The report with a field of another value.
fn with(field: &str, value: Value) -> String {
    let mut report = report("checkout", 1);
    report[field] = value;
    report.to_string()
}

fn edges(server: &Server) -> Vec<Value> {
    let (status, text) = server.get_as(token("viewer"), "/api/v1/edges?limit=10000");
    assert_eq!(status, 200, "{text}");
    let page: Value = serde_json::from_str(super::server::body(&text)).expect("it is JSON");
    page["edges"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn a_report_that_cannot_be_counted_is_refused_with_the_reason() {
    let folder = Folder::new();
    let server = guarded(&folder);
    let counts =
        |count: Value| json!([{"callee": "p", "procedure": "/", "counts": {"calls_ok": count}}]);
    let many = json!([{"callee": "p", "procedure": "/", "counts": {}}]);
    let rows = Value::from(vec![many[0].clone(); 10_001]);
    for (status, kind, says, body) in [
        (400, "bad-body", "line 1", "{".to_owned()),
        (400, "bad-body", "missing field", "{}".to_owned()),
        (400, "bad-body", "invalid type", with("sequence", json!("1"))),
        (400, "bad-body", "invalid value", with("edges", counts(json!(-1)))),
        (422, "bad-report", "schema_version is 0", with("schema_version", json!(0))),
        (
            422,
            "bad-report",
            "knows 1 to 1: update it before its agents",
            with("schema_version", json!(2)),
        ),
        (422, "bad-report", "service is \"\"", with("service", json!(""))),
        (422, "bad-report", "instance is", with("instance", json!("a\nb"))),
        (422, "bad-report", "the first report has 1", with("sequence", json!(0))),
        (
            422,
            "bad-report",
            "a count is 9999999999999",
            with("edges", counts(json!(9_999_999_999_999_u64))),
        ),
        (422, "bad-report", "10001 edges and procedures", with("edges", rows)),
        (413, "too-large", "at most 1000000 bytes", with("instance", json!("x".repeat(1_000_001)))),
        (
            403,
            "forbidden",
            "does not speak for the service \"payments\"",
            report("payments", 1).to_string(),
        ),
        (403, "forbidden", "does not speak for", report("checkout2", 1).to_string()),
    ] {
        let (got, text) = server.post_as(token("checkout"), "/api/v1/reports", &body);
        assert_eq!(got, status, "{says}: {text}");
        assert!(text.contains("content-type: application/problem+json"), "{text}");
        let problem: Value = serde_json::from_str(super::server::body(&text)).expect("it is JSON");
        assert_eq!(problem["type"], format!("urn:onus:problem:{kind}"), "{text}");
        assert!(problem["detail"].as_str().expect("a text").contains(says), "{says}: {text}");
    }
    assert_eq!(edges(&server), Vec::<Value>::new(), "nothing is stored");
    let (status, text) = server.get_as(token("viewer"), "/metrics");
    assert_eq!(status, 200);
    assert!(text.contains("onus_analysis_reports_total{result=\"refused\"} 14\n"), "{text}");

    let one = report("checkout", 1).to_string();
    let (status, text) = server.post_as("checkout-9876543210", "/api/v1/reports", &one);
    assert_eq!(status, 401, "{text}");
    assert!(text.contains("application/problem+json") && text.contains("the token is not known"));
    assert_eq!(edges(&server), Vec::<Value>::new(), "nothing is stored");

    for service in ["checkout", "shop/cart"] {
        let body = report(service, 1).to_string();
        assert_eq!(server.post_as(token("checkout"), "/api/v1/reports", &body).0, 200, "{service}");
    }
    assert_eq!(edges(&server).len(), 2);
}

#[tokio::test]
async fn agents_of_other_versions_are_understood_and_clocks_move_no_counts() {
    let folder = Folder::new();
    let server = guarded(&folder);
    let now = since_1970();
    let hour = 3_600_000;
    let failed =
        json!([{"callee": "payments", "procedure": "/pay", "counts": {"calls_failed": 1}}]);
    for (sequence, field, value) in [
        // An older agent says less, a newer one more.
        (1, "facts", Value::Null),
        (2, "told_by_a_newer_agent", json!({"x": [1]})),
        (3, "facts", json!({"mode": "enforce", "told_by_a_newer_agent": 1})),
        // Clocks that are slow, fast, and of another age.
        (4, "at", json!(now - hour)),
        (5, "at", json!(now + hour)),
        (6, "at", json!(u64::MAX)),
    ] {
        let mut report = report("checkout", sequence);
        report["edges"] = failed.clone();
        match value {
            Value::Null => drop(report.as_object_mut().expect("an object").remove(field)),
            value @ (Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_)) => report[field] = value,
        }
        let (status, text) =
            server.post_as(token("checkout"), "/api/v1/reports", &report.to_string());
        assert_eq!(status, 200, "{field}: {text}");
    }
    assert_eq!(edges(&server)[0]["counts"]["calls_failed"], 6);
    let (status, text) = server.get_as(
        token("viewer"),
        &format!("/api/v1/incident?from={}&to={}", now - hour / 2, now + hour / 2),
    );
    assert_eq!(status, 200, "{text}");
    let incident: Value = serde_json::from_str(super::server::body(&text)).expect("it is JSON");
    let minutes = incident["minutes"].as_array().expect("a list");
    let failed: u64 = minutes.iter().filter_map(|minute| minute["failed"].as_u64()).sum();
    assert_eq!(failed, 6, "no minute is off by half an hour: {incident}");
    let (_, text) = server.get_as(token("viewer"), "/metrics");
    assert!(text.contains("onus_analysis_lost_reports_total 0\n"), "{text}");
}

#[expect(clippy::disallowed_methods, reason = "the analysis is asked for a time of its clock")]
fn since_1970() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("it is after 1970").as_millis() as u64
}

#[tokio::test]
async fn each_role_may_do_its_own() {
    let folder = Folder::new();
    let server = guarded(&folder);
    let one = report("checkout", 1).to_string();
    for (who, method, path, status) in [
        ("nobody", "GET", "/livez", 200),
        ("nobody", "GET", "/readyz", 200),
        ("nobody", "GET", "/api/v1/edges", 401),
        ("nobody", "POST", "/api/v1/reports", 401),
        ("nobody", "GET", "/metrics", 401),
        ("checkout", "GET", "/api/v1/edges", 403),
        ("checkout", "GET", "/metrics", 403),
        ("checkout", "GET", "/api/v1/classes?service=checkout", 200),
        ("checkout", "GET", "/api/v1/classes?service=payments", 403),
        ("viewer", "GET", "/api/v1/classes?service=payments", 200),
        ("viewer", "GET", "/api/v1/edges", 200),
        ("viewer", "POST", "/api/v1/reports", 403),
        ("operator", "POST", "/api/v1/reports", 403),
        ("admin", "GET", "/api/v1/edges?limt=3", 400),
        ("admin", "GET", "/api/v1/edges?limit=0", 400),
        ("admin", "GET", "/api/v1/classes", 400),
        ("admin", "GET", "/nothing", 404),
        ("admin", "PUT", "/api/v1/edges", 405),
        ("admin", "POST", "/api/v1/reports", 200),
    ] {
        let body = if method == "POST" { &one } else { "" };
        let (got, text) = server.ask_as(token(who), method, path, body);
        assert_eq!(got, status, "{who} {method} {path}: {text}");
    }
    // A token that changes on disk lets its new owner in, and the old one no more.
    fs::write(folder.path().join("viewer"), "viewer-abcdefghijkl").expect("the token is written");
    super::server::until("the token is read again", async || {
        server.get_as("viewer-abcdefghijkl", "/api/v1/edges").0 == 200
    })
    .await;
    assert_eq!(server.get_as(token("viewer"), "/api/v1/edges").0, 401);
}

#[tokio::test]
async fn hostile_names_share_one_edge_and_are_counted() {
    let folder = Folder::new();
    let server = guarded(&folder);
    let mut sequence = 0;
    let mut send = |names: Vec<String>| {
        sequence += 1;
        let mut report = report("checkout", sequence);
        let edge = |name| json!({"callee": "p", "procedure": name, "counts": {"calls_ok": 1}});
        report["edges"] = names.into_iter().map(edge).collect();
        let (status, text) =
            server.post_as(token("checkout"), "/api/v1/reports", &report.to_string());
        assert_eq!(status, 200, "{text}");
    };
    // As paths with ids in them.
    for ten_thousands in 0..MANY / 10_000 {
        send((0..10_000).map(|number| format!("/{ten_thousands}/{number}")).collect());
    }
    send(vec![
        "/a".to_owned(),
        "x".repeat(10_000),
        "/\u{1b}[2J".to_owned(),
        "/a\u{202e}b".to_owned(),
    ]);
    let edges = edges(&server);
    let names: Vec<_> = edges.iter().filter_map(|edge| edge["procedure"].as_str()).collect();
    assert!(names.len() <= 101, "{}", names.len());
    let other: u64 = edges
        .iter()
        .filter(|edge| edge["procedure"] == "__other__")
        .filter_map(|edge| edge["counts"]["calls_ok"].as_u64())
        .sum();
    assert_eq!(other, MANY + 4 - (names.len() as u64 - 1), "no call is lost: {names:?}");
    let (_, text) = server.get_as(token("viewer"), "/metrics");
    assert!(text.contains("onus_analysis_replaced_names_total 3\n"), "{text}");
    assert!(text.contains("onus_analysis_overflows_total 49904\n"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
}
