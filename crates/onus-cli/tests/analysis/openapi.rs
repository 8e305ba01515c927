//! The two APIs, and the documents that describe them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use onus::report::Analysis;
use serde_json::{Value, json};

use super::levers::admin;
use super::people::chain;
use super::schema::wrong;
use super::server::{Folder, Server, ask, body};
use super::service::{Broken, Service};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

type Routes = BTreeSet<(String, String)>;

/// What the document says can be asked: method and path.
fn described(document: &Value) -> Routes {
    let paths = document["paths"].as_object().expect("there are paths");
    paths
        .iter()
        .flat_map(|(path, item)| {
            let methods = item.as_object().expect("a path has methods").keys();
            methods.map(|method| (method.clone(), path.clone()))
        })
        .collect()
}

fn document(url: &str) -> Value {
    let (status, text) = ask(url, "", "GET", "/openapi.json", "");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("content-type: application/json"), "{text}");
    serde_json::from_str(body(&text)).expect("it is JSON")
}

/// What OpenAPI 3.1 asks of a document, as far as these have it.
fn assert_is_openapi(document: &Value) {
    assert_eq!(document["openapi"], "3.1.0");
    for field in ["title", "version"] {
        assert!(document["info"][field].is_string(), "info.{field}");
    }
    let mut ids = BTreeSet::new();
    let mut known = document["components"]["securitySchemes"].as_object().expect("some").keys();
    for (method, path) in described(document) {
        let operation = &document["paths"][&path][&method];
        assert!(path.starts_with('/') && METHODS.contains(&&*method), "{method} {path}");
        assert!(ids.insert(operation["operationId"].as_str().expect("it has a name")), "{path}");
        assert!(!operation["summary"].as_str().unwrap_or_default().is_empty(), "{path}");
        let responses = operation["responses"].as_object().expect("it is answered");
        assert!(responses.contains_key("200") && responses.contains_key("default"), "{path}");
        assert!(responses.values().all(|response| response["description"].is_string()), "{path}");
        let mut names = BTreeSet::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(names.insert(parameter["name"].as_str().expect("it has a name")), "{path}");
            assert!(parameter["in"] == "query" || parameter["in"] == "header", "{parameter}");
            assert!(parameter["schema"].is_object(), "{parameter}");
        }
        for needs in operation["security"].as_array().into_iter().flatten() {
            let name = needs.as_object().and_then(|needs| needs.keys().next()).expect("a scheme");
            assert!(known.any(|known| known == name) || name == "certificate", "{path}: {name}");
            known = document["components"]["securitySchemes"].as_object().expect("some").keys();
        }
    }
    assert_references_lead_somewhere(document, document);
}

fn assert_references_lead_somewhere(document: &Value, value: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                let place = name.strip_prefix('#').expect("it leads into the document");
                assert!(document.pointer(place).is_some(), "{name}");
            }
            fields.values().for_each(|it| assert_references_lead_somewhere(document, it));
        }
        Value::Array(items) => {
            items.iter().for_each(|it| assert_references_lead_somewhere(document, it));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Each documented route is there, and each other method of its path is refused.
fn assert_served(url: &str, document: &Value) {
    let described = described(document);
    for (_, path) in &described {
        for method in METHODS {
            let (status, text) = ask(url, "", &method.to_uppercase(), path, "{}");
            let is_there = described.contains(&(method.to_owned(), path.clone()));
            let served = !matches!(status, 404 | 405);
            assert_eq!(served, is_there, "{method} {path}: {text}");
            if !(200..300).contains(&status) {
                let schema = json!({"$ref": "#/components/schemas/Problem"});
                let problem: Value = serde_json::from_str(body(&text)).expect("it is JSON");
                assert_eq!(wrong(document, &schema, &problem, ""), [""; 0], "{text}");
            }
        }
    }
}

/// Whether the answer to a question is what the document says.
fn assert_answers(url: &str, document: &Value, method: &str, question: &str, sent: &str) {
    let (status, text) = ask(url, "", &method.to_uppercase(), question, sent);
    assert_eq!(status, 200, "{method} {question}: {text}");
    let path = question.split('?').next().expect("a path");
    let operation = &document["paths"][path][method];
    for parameter in question.split(['?', '&']).skip(1) {
        let name = parameter.split('=').next().expect("a name");
        let known = operation["parameters"].as_array().into_iter().flatten();
        assert!(known.into_iter().any(|it| it["name"] == name), "{question}: {name}");
    }
    let answer: Value = serde_json::from_str(body(&text)).expect("it is JSON");
    let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(wrong(document, schema, &answer, ""), [""; 0], "{method} {question}: {text}");
    if !sent.is_empty() {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let sent: Value = serde_json::from_str(sent).expect("it is JSON");
        assert_eq!(wrong(document, schema, &sent, ""), [""; 0], "{method} {question}: {sent}");
    }
}

#[tokio::test]
async fn the_analysis_has_the_routes_of_its_document_and_answers_as_it_says() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let document = document(&server.url);
    assert_is_openapi(&document);
    assert_served(&server.url, &document);
    chain(&server);
    let order =
        json!({"service": "c", "mode": "off", "shield_seconds": 60, "who": "alice", "why": "test"});
    let class = json!({
        "caller": "a", "callee": "b", "class": "fail-open", "owner": "alice", "reason": "test",
        "ticket": "T-1", "for_seconds": 60,
    });
    let report = json!({
        "schema_version": 1, "service": "a", "instance": "2", "sequence": 1, "at": 0,
        "facts": {"mode": "observe", "version": "0.1.0"},
        "edges": [{"caller_procedure": "GET /", "callee": "b", "procedure": "GET /",
                   "policy": {"attempts": 2, "budget_percent": 10, "budget_balance": 1},
                   "counts": {"calls_ok": 1}}],
        "procedures": [{"procedure": "GET /", "counts": {"ok": 1}}],
    });
    for (method, question, sent) in [
        ("post", "/api/v1/reports", report.to_string()),
        ("post", "/api/v1/orders", order.to_string()),
        ("post", "/api/v1/overrides", class.to_string()),
        ("get", "/api/v1/classes?service=a", String::new()),
        ("get", "/api/v1/edges?caller=a&limit=1", String::new()),
        ("get", "/api/v1/now", String::new()),
        ("get", "/api/v1/graph", String::new()),
        ("get", "/api/v1/radius?service=a", String::new()),
        ("get", "/api/v1/incident", String::new()),
        ("get", "/api/v1/orders", String::new()),
        ("get", "/api/v1/audit?limit=10", String::new()),
    ] {
        assert_answers(&server.url, &document, method, question, &sent);
    }
    let (_, text) = server.get("/api/v1/orders");
    let orders: Value = serde_json::from_str(body(&text)).expect("it is JSON");
    let drop = json!({"id": orders["overrides"][0]["id"]}).to_string();
    assert_answers(&server.url, &document, "post", "/api/v1/overrides/drop", &drop);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_admin_service_has_the_routes_of_its_document_and_answers_as_it_says() {
    let service = Service::start("checkout", Analysis::at("http://127.0.0.1:1"));
    service.serve(Broken::Payments).await;
    let url = format!("http://{}", admin(&service).await);
    let (open, token) = (url.clone(), "a-token-of-the-mesh");
    tokio::task::spawn_blocking(move || {
        let document = document(&open);
        assert_is_openapi(&document);
        assert_served(&open, &document);
        assert_answers(&open, &document, "get", "/api/v1/now", "");
        let switch = json!({"mode": "off", "shield_seconds": 60, "who": "alice", "why": "test"});
        let (status, text) = ask(&open, token, "POST", "/api/v1/switch", &switch.to_string());
        assert_eq!(status, 200, "{text}");
        let answer: Value = serde_json::from_str(body(&text)).expect("it is JSON");
        let schema = json!({"$ref": "#/components/schemas/Snapshot"});
        assert_eq!(wrong(&document, &schema, &answer, ""), [""; 0], "{text}");
    })
    .await
    .expect("it holds");
}

/// Routes as the sources of the servers have them, so that none is there that is not described.
#[test]
fn no_route_is_left_out_of_the_documents() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| fs::read_to_string(crates.join(path)).expect("the file is there");
    let document = |path| serde_json::from_str::<Value>(&read(path)).expect("it is JSON");
    let mut routes = Routes::new();
    for part in read("onus-analysis/src/http.rs").split(".route(").skip(1) {
        let path = part.split('"').nth(1).expect("a path");
        let handlers = part.split_once("\", ").expect("handlers").1;
        let handlers = handlers.split(".layer").next().expect("handlers");
        for method in METHODS {
            if handlers.contains(&format!("{method}(")) {
                routes.insert((method.to_owned(), path.to_owned()));
            }
        }
    }
    assert_eq!(routes, described(&document("onus-api/openapi/analysis.json")));
    let source = read("onus/src/report/admin.rs");
    let (_, matches) = source.split_once("fn read(").expect("it reads");
    let (reads, rest) = matches.split_once("fn switch(").expect("it switches");
    let mut routes = Routes::new();
    for (method, part) in [("get", reads), ("post", rest)] {
        for text in part.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/')) {
            routes.insert((method.to_owned(), text.to_owned()));
        }
    }
    assert_eq!(routes, described(&document("onus-api/openapi/agent.json")));
}
