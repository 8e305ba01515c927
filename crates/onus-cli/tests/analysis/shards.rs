//! Two analyses that share the callers of a mesh by a hash of their names: whoever asks one of them
//! is told of all, and who reports to the wrong one is sent on.

use onus::Mode;
use onus::report::Analysis;
use serde_json::Value;

use super::levers::shield_left;
use super::restarts::free_address;
use super::server::{Folder, Server, body, until};
use super::service::{Broken, Service};

/// Of these the first two belong to the first analysis, by the hash.
const SERVICES: [&str; 4] = ["front", "orders", "cart", "search"];

pub(crate) fn start(folders: &[Folder; 2], minute: &str, more: &str) -> [Server; 2] {
    let addresses = [free_address(), free_address()];
    [0, 1].map(|index| {
        let [one, two] = addresses;
        let shard = format!(
            "{more}shard: {{addresses: [\"http://{one}\", \"http://{two}\"], index: {index}}}\n"
        );
        let listen = addresses[index].to_string();
        Server::start_with_minute(&folders[index], &listen, minute, &shard)
    })
}

/// The callers that the analysis tells of, by itself.
fn own_callers(server: &Server) -> Vec<String> {
    let (_, text) = server.get("/api/v1/edges");
    let page: Value = serde_json::from_str(body(&text)).expect("it is JSON");
    callers(&page)
}

pub(crate) fn callers(page: &Value) -> Vec<String> {
    let edges = page["edges"].as_array().expect("a list").iter();
    let mut callers: Vec<_> =
        edges.map(|edge| edge["caller"].as_str().expect("a name").to_owned()).collect();
    callers.sort();
    callers.dedup();
    callers
}

pub(crate) fn document(server: &Server, arguments: &[&str]) -> Value {
    let output = server.onus(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{output:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_one_of_two_analyses_is_told_of_all_and_sent_on() {
    let folders = [Folder::new(), Folder::new()];
    let [one, two] = start(&folders, "1s", "");
    // All of them know the first only.
    let services = SERVICES.map(|name| Service::start(name, Analysis::at(&one.url)));
    for service in &services {
        for broken in [Broken::Nothing, Broken::Payments] {
            for _ in 0..15 {
                service.serve(broken).await;
            }
        }
    }
    until("all reports have come", async || {
        own_callers(&one) == ["front", "orders"] && own_callers(&two) == ["cart", "search"]
    })
    .await;
    let sorted = ["cart", "front", "orders", "search"];
    for server in [&one, &two] {
        let edges = document(server, &["edges", "-o", "json"]);
        assert_eq!(callers(&edges), sorted);
        assert_eq!(edges.get("missing"), None, "{edges}");
        let radius = document(server, &["radius", "-o", "json"]);
        let roots = radius["services"].as_array().expect("a list");
        assert_eq!(roots.len(), 4, "{radius}");
        assert!(roots.iter().all(|root| root["without"]["radius"] == 1), "{radius}");
        let now = document(server, &["now", "-o", "json"]);
        assert_eq!(now["culprits"][0]["service"], "payments", "{now}");
        let incident = document(server, &["report", "-o", "json"]);
        let roots = incident["roots"].as_array().expect("a list");
        assert_eq!((roots.len(), &incident["origin"]), (4, &"payments".into()), "{incident}");
    }

    // An order is sent on to the analysis that has the service, and one for all goes to both.
    let why = ["--reason", "db", "--who", "alice"];
    let output = one.onus(&[&["shield", "cart"], &why[..]].concat());
    assert!(output.status.success(), "{output:?}");
    until("the shield is up", async || !shield_left(&services[2]).is_zero()).await;
    let output = two.onus(&[&["off", "--all"], &why[..]].concat());
    assert!(output.status.success(), "{output:?}");
    until("all are off", async || services.iter().all(|service| service.onus.mode() == Mode::Off))
        .await;
    let listed = one.onus(&["off", "--list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.matches("all services").count(), 1, "{listed}");
    assert!(listed.contains("cart"), "{listed}");

    // What one of them would know is missing by name.
    let gone = two.url.clone();
    two.kill();
    let edges = document(&one, &["edges", "-o", "json"]);
    assert_eq!(callers(&edges), ["front", "orders"]);
    let missing = edges["missing"][0].as_str().expect("a text");
    assert!(missing.starts_with(&format!("the callers of the analysis at {gone}")), "{missing}");
    let table = one.onus(&["radius"]);
    let note = String::from_utf8_lossy(&table.stderr).into_owned();
    assert!(table.status.success() && note.contains("note: not in these figures"), "{note}");
    let markdown = one.onus(&["report"]);
    let markdown = String::from_utf8_lossy(&markdown.stdout).into_owned();
    assert!(markdown.contains("| Not in these figures | the callers of"), "{markdown}");
    let check = one.onus(&["check", "-o", "json"]);
    let found: Value = serde_json::from_slice(&check.stdout).expect("it is JSON");
    assert_eq!(check.status.code(), Some(3), "{found}");
    let evidence = found["findings"].as_array().expect("a list").iter();
    assert!(evidence.clone().any(|it| it["evidence"] == "callers"), "{found}");
}
