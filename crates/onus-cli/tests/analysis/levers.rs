//! What an operator says reaches the services, with the analysis and without it.

use std::net::SocketAddr;
use std::time::Duration;

use onus::Mode;
use onus::report::Analysis;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::server::{Folder, Server, body, until};
use super::service::{Broken, Service};

pub(crate) fn shield_left(service: &Service) -> Duration {
    let agent = service.onus.agent();
    // The shield is set by the clock of the layers, which began after this one's zero.
    agent.shield_left(onus_agent::Timestamp::ZERO)
}

pub(crate) fn succeeds(output: &std::process::Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_reach_the_services_within_seconds_and_are_written_down() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let [checkout, cart] =
        ["checkout", "cart"].map(|name| Service::start(name, Analysis::at(&server.url)));
    until("they follow", async || server.get("/api/v1/now").1.contains("observe")).await;

    let since = Instant::now();
    let arguments = ["shield", "checkout", "--for", "2m", "--reason", "db", "--who", "alice"];
    assert!(succeeds(&server.onus(&arguments)).contains("is up for 120 s"));
    until("the shield is up", async || !shield_left(&checkout).is_zero()).await;
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    assert!(shield_left(&cart).is_zero());

    let arguments = ["off", "--all", "--reason", "incident 42", "--who", "bob"];
    assert!(succeeds(&server.onus(&arguments)).contains("all services is off until"));
    until("both are off", async || {
        [&checkout, &cart].iter().all(|service| service.onus.mode() == Mode::Off)
    })
    .await;
    assert!(!shield_left(&checkout).is_zero(), "a shield goes on");

    // What was said outlives the process that was told.
    let url = server.url.trim_start_matches("http://").to_owned();
    server.kill();
    let server = Server::start(&folder, &url, "");
    let late = Service::start("late", Analysis::at(&server.url));
    until("who comes late is off too", async || late.onus.mode() == Mode::Off).await;

    succeeds(&server.onus(&["off", "--all", "--back", "--reason", "over", "--who", "bob"]));
    until("they are as before", async || {
        [&checkout, &cart, &late].iter().all(|service| service.onus.mode() == Mode::Observe)
    })
    .await;
    succeeds(&server.onus(&["shield", "checkout", "--down", "--reason", "over", "--who", "alice"]));
    until("the shield is down", async || shield_left(&checkout).is_zero()).await;

    let output = server.onus(&["shield", "ledger", "--end", "--reason", "typed"]);
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(note.contains("note: no process of ledger has reported"), "{note}");

    let (_, text) = server.get("/api/v1/audit");
    let audit: Value = serde_json::from_str(body(&text)).expect("it is JSON");
    let said: Vec<_> = audit["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .rev()
        .map(|entry| (entry["action"].as_str(), entry["subject"].as_str()))
        .collect();
    let set = |subject| (Some("order-set"), Some(subject));
    assert_eq!(said, [set("checkout"), set("*"), set("*"), set("checkout"), set("ledger")]);
    assert!(text.contains("incident 42") && text.contains("bob"), "{text}");
    assert!(
        text.contains("unknown"),
        "who does not say a name is written down all the same: {text}"
    );
    for (arguments, status, says) in [
        (&["off", "--reason", "x", "--who", "y"][..], 2, "say one service, or --all"),
        (&["shield", "a", "--for", "25h", "--reason", "x", "--who", "y"], 2, "1s to 24h"),
        (&["shield", "a", "--reason", "", "--who", "y"], 1, "why is \"\""),
    ] {
        let output = server.onus(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(text.contains(says), "{text}");
    }
}

/// Serves what operators of the service talk to.
pub(crate) async fn admin(service: &Service) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let admin = service.onus.admin().token("a-token-of-the-mesh");
    let routes = axum::Router::new().fallback_service(admin);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_analysis_the_culprit_is_named_and_the_levers_work() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let [checkout, payments] =
        ["checkout", "payments"].map(|name| Service::start(name, Analysis::at(&server.url)));
    let agents = format!("{},{}", admin(&checkout).await, admin(&payments).await);
    let url = server.url.clone();
    server.kill();

    let onus = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_onus"));
        command.env_remove("RUST_LOG").env("ONUS_ANALYSIS", &url).env("COLUMNS", "200");
        command.args(arguments).args(["--agents", &agents]).output().await.expect("it runs")
    };
    let since = Instant::now();
    let traffic = async {
        loop {
            payments.serve(Broken::Itself).await;
            checkout.serve(Broken::Payments).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let output = tokio::select! {
        output = onus(&["now", "-o", "json"]) => output,
        () = traffic => unreachable!("it goes on"),
    };
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    let now: Value = serde_json::from_str(&succeeds(&output)).expect("it is JSON");
    assert_eq!(now["culprits"][0]["service"], "payments", "{now}");
    assert_eq!(now["culprits"][0]["why"], "own-claims");
    assert_eq!(now["path"][0]["caller"], "checkout");
    assert_eq!(now["path"][0]["factor"], 2.0, "two attempts of each call: {now}");

    let lever = ["shield", "payments", "--reason", "db", "--who", "alice"];
    let refused = onus(&lever).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the token is missing or wrong"));
    let since = Instant::now();
    succeeds(&onus(&[&lever[..], &["--token", "a-token-of-the-mesh"]].concat()).await);
    assert!(!shield_left(&payments).is_zero());
    assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
    let lever =
        ["off", "--all", "--reason", "db", "--who", "alice", "--token", "a-token-of-the-mesh"];
    succeeds(&onus(&lever).await);
    assert_eq!([checkout.onus.mode(), payments.onus.mode()], [Mode::Off; 2]);

    let table = succeeds(&onus(&["now"]).await);
    assert!(table.contains("off"), "{table}");
    let nobody = tokio::process::Command::new(env!("CARGO_BIN_EXE_onus"))
        .env("ONUS_ANALYSIS", &url)
        .args(["now"])
        .output()
        .await
        .expect("it runs");
    let text = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text.contains("failed to find a source: the analysis: ask http"), "{text}");
}
