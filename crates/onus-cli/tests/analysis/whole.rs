//! From counters to classes and back, and to people.

use onus::EdgeClass;
use onus::report::Analysis;
use serde_json::Value;

use super::server::{Folder, Server, until};
use super::service::{Broken, Service};

pub(crate) fn class(service: &Service, callee: &str) -> Option<EdgeClass> {
    let agent = service.onus.agent();
    let edge = agent.edges().find(|edge| *edge.name(agent.symbols()).callee == *callee)?;
    Some(edge.class())
}

#[tokio::test]
async fn what_agents_count_comes_back_as_classes_and_is_shown() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let kept = folder.path().join("classes.json");
    let service = Service::start("checkout", Analysis::at(&server.url).keep_classes_in(&kept));
    for broken in [Broken::Nothing, Broken::Payments, Broken::Recs] {
        for _ in 0..30 {
            service.serve(broken).await;
        }
    }
    // This process alone would have to wait for a minute.
    until("the classes come back", async || {
        class(&service, "recs") == Some(EdgeClass::FailOpen)
            && class(&service, "payments") == Some(EdgeClass::FailClose)
    })
    .await;

    let edges = server.onus(&["edges", "--caller", "checkout", "-o", "json"]);
    let page: Value = serde_json::from_slice(&edges.stdout).expect("it is JSON");
    assert_eq!(page["schema_version"], 1);
    let figures: Vec<_> = page["edges"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|edge| {
            let count = |name: &str| edge["counts"][name].as_u64().unwrap_or(0);
            let of = |name: &str| edge[name].as_str().expect("a text").to_owned();
            (of("callee"), of("class"), count("calls_ok"), count("calls_failed"), count("retries"))
        })
        .collect();
    let expected = [("payments", "fail-close", 60, 30, 30), ("recs", "fail-open", 60, 30, 0)];
    assert_eq!(
        figures,
        expected.map(|(callee, class, ok, failed, retries)| {
            (callee.to_owned(), class.to_owned(), ok, failed, retries)
        })
    );

    let explained = server.onus(&["explain", "checkout", "recs"]);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(text.contains("the caller failed in 0 of 25 isolated failures"), "{text}");
    let unknown = server.onus(&["explain", "checkout", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2));

    // A process that starts while the analysis is away knows what was known.
    let url = server.url.clone();
    server.kill();
    service.reporter.finish().await;
    let next = Service::start("checkout", Analysis::at(&url).keep_classes_in(&kept));
    next.serve(Broken::Nothing).await;
    until("the classes on disk are used", async || {
        class(&next, "recs") == Some(EdgeClass::FailOpen)
    })
    .await;
}
