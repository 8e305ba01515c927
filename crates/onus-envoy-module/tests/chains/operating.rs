//! What operators see and do: counters and switches.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cast::{App, Chain, Client, Envoy, Filters, Protocol, Retries, Sidecar, scratch, until};

/// The sum of the series of this name with all these labels, in what Envoy shows to Prometheus.
pub(super) async fn sum(envoy: &Envoy, name: &str, labels: &[&str]) -> u64 {
    let page = envoy.get("/stats/prometheus").await.unwrap();
    // Those of a module have a prefix.
    let is = |line: &str| {
        line.split_once('{').is_some_and(|(found, _)| {
            found
                .strip_suffix(name)
                .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('_'))
        })
    };
    let lines =
        page.lines().filter(|line| is(line) && labels.iter().all(|label| line.contains(label)));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn envoy_s_statistics_have_the_edges_and_their_outcomes() {
    let Some(binary) = Envoy::binary("envoy_s_statistics") else { return };
    statistics(&binary, vec![Filters::module("enforce"); 3]).await;
}

#[tokio::test]
async fn envoy_s_statistics_have_the_plugin_s_counters_with_their_labels() {
    let Some(binary) = Envoy::binary_and_plugin("envoy_s_statistics_have_the_plugin_s") else {
        return;
    };
    statistics(&binary, vec![Filters::Wasm("enforce"); 3]).await;
}

/// What a chain of three, the last of which fails, has in the statistics of its Envoys.
async fn statistics(binary: &Path, filters: Vec<Filters>) {
    let chain =
        Chain::broken_at_its_end(binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
    chain.send(10, &[]).await;
    let edge = [
        r#"caller="b""#,
        r#"callee="c""#,
        r#"caller_method="GET calls""#,
        r#"callee_method="GET calls""#,
    ];
    let with = |more: &[&'static str]| [&edge[..], more].concat();
    let failed =
        with(&[r#"callee_outcome="error""#, r#"caller_outcome="error""#, r#"isolated="true""#]);
    let unclaimed = [r#"claim="unclaimed""#, r#"reason="not-configured""#, r#"arm="enforce""#];
    let (mut sent, mut told) = (10, [0; 4]);
    // The first stream told what there was then; one after the interval tells the rest.
    until("all is told", async || {
        chain.send(1, &[]).await;
        sent += 1;
        let (a, b) = (&chain.envoys[0], &chain.envoys[1]);
        told = [
            sum(b, "onus_calls_total", &with(&[])).await,
            sum(b, "onus_edge_requests_total", &failed).await,
            sum(b, "onus_claims_total", &unclaimed).await,
            sum(a, "onus_retries_not_made_total", &[r#"reason="suppressed""#]).await,
        ];
        told.iter().all(|count| *count >= 10)
    })
    .await;
    let [.., failures, claims, _] = told;
    assert_eq!(failures, claims);
    assert!(told.iter().all(|count| *count <= sent), "{told:?} of {sent}");
}

#[tokio::test]
async fn a_file_switches_while_envoy_runs() {
    let Some(binary) = Envoy::binary("a_file_switches") else { return };
    let dir = scratch();
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("switch");
    let lines = vec![("mode", "observe".to_owned()), ("switch-file", file.display().to_string())];
    let filters = vec![Filters::Module(lines); 2];
    let chain =
        Chain::broken_at_its_end(&binary, Protocol::Http1, &filters, Retries::On5xx(1)).await;
    let veto = async || chain.send(1, &[]).await.line("x-envoy-ratelimited").to_owned();
    assert_eq!(veto().await, "");
    for (text, expected, claim) in [
        ("mode: enforce", "true", "unclaimed"),
        ("mode: off", "", ""),
        ("mode: off\nshield: 60s", "true", "unclaimed;kind=shield"),
    ] {
        fs::write(&file, text).unwrap();
        until(text, async || {
            let seen = chain.send(1, &[]).await;
            let is = seen.line("onus-claim").split(";reason").next().unwrap();
            (seen.line("x-envoy-ratelimited"), is) == (expected, claim)
        })
        .await;
    }
    // What cannot be meant changes nothing, and is told.
    fs::write(&file, "mode: nonsense").unwrap();
    until("the refusal is told", async || {
        let seen = chain.send(1, &[]).await;
        assert_eq!(seen.line("x-envoy-ratelimited"), "true");
        // Each Envoy looks at the file once a second, at its own time.
        let tells = "mode is \\\"nonsense\\\"; allowed is off, observe";
        chain.envoys[..2].iter().all(|envoy| envoy.log().contains(tells))
    })
    .await;
    // Its filters of both sides follow the file.
    let log = chain.envoys[0].log();
    assert_eq!(log.matches("onus: switched").count(), 3, "once for each file: {log}");
    assert_eq!(log.matches("switch file refused").count(), 1, "{log}");
    fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_new_configuration_under_load_costs_no_request() {
    let Some(binary) = Envoy::binary("a_new_configuration_under_load") else { return };
    configured_anew(&binary, Filters::module).await;
}

#[tokio::test]
async fn a_new_configuration_switches_the_plugin_while_envoy_runs() {
    let Some(binary) = Envoy::binary_and_plugin("a_new_configuration_switches_the_plugin") else {
        return;
    };
    configured_anew(&binary, Filters::Wasm).await;
}

/// An Envoy in front of an application that calls nobody.
fn in_front_of<'a>(app: &App, filters: &'a Filters) -> Sidecar<'a> {
    Sidecar {
        service: "a",
        protocol: Protocol::Http1,
        app: app.address,
        callee: ("b", "127.0.0.1:9".parse().expect("it is an address")),
        retries: Retries::None,
        filters,
        old: false,
    }
}

/// The listeners of an Envoy under load, in a file, change to filters in other modes, and to one that
/// cannot be meant.
async fn configured_anew(binary: &Path, filters: fn(&'static str) -> Filters) {
    let dir = scratch();
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("listeners.yaml");
    let app = App::failing(Protocol::Http1).await;
    let put = |mode: &'static str| {
        let filters = filters(mode);
        let sidecar = in_front_of(&app, &filters);
        // Envoy sees a file that is moved into place.
        let new = dir.join("new");
        fs::write(&new, sidecar.watched_listeners()).unwrap();
        fs::rename(&new, &file).unwrap();
        sidecar.yaml_watching(&file)
    };
    let config = put("observe");
    let envoy = Envoy::start(binary, &config).await;
    let to = envoy.port("inbound");
    let (claims, mut seen) = watch::channel(String::new());
    let mut load = JoinSet::new();
    for _ in 0..8 {
        let claims = claims.clone();
        load.spawn(async move {
            let (client, mut answers) = (Client::new(Protocol::Http1), 0);
            while claims.receiver_count() > 0 {
                let seen = client.send(to, &http::HeaderMap::new()).await.expect("an answer");
                assert_eq!(seen.status, 500, "of the application");
                answers += 1;
                let claim = seen.line("onus-claim").split(';').next().unwrap();
                claims.send_replace(claim.to_owned());
            }
            answers
        });
    }
    for mode in ["off", "observe", "off"] {
        put(mode);
        told(&mut seen, if mode == "off" { "" } else { "claimed" }).await;
    }
    put("sideways");
    until("the refusal is told", async || {
        envoy.log().contains("mode is \"sideways\"; allowed is off, observe, enforce")
    })
    .await;
    // A connection that is older keeps what it began with until Envoy has drained it.
    let fresh = Client::new(Protocol::Http1).send(to, &http::HeaderMap::new()).await.unwrap();
    assert_eq!(fresh.line("onus-claim"), "", "what was in force stays");
    put("observe");
    told(&mut seen, "claimed").await;
    drop(seen);
    let answers: u64 = load.join_all().await.into_iter().sum();
    assert_eq!(app.handled(), answers + 1, "{}", envoy.log());
    fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_filter_s_own_file_switches_the_next_request_of_open_connections() {
    let Some(binary) = Envoy::binary("a_filter_s_own_file_switches") else { return };
    switched_by_its_own_file(&binary, Filters::module).await;
}

#[tokio::test]
async fn the_plugin_s_own_file_switches_the_next_request_of_open_connections() {
    let Some(binary) = Envoy::binary_and_plugin("the_plugin_s_own_file_switches") else { return };
    switched_by_its_own_file(&binary, Filters::Wasm).await;
}

/// A listener that changes keeps its connections as they are until they are drained; filters that
/// Envoy discovers by themselves change under them.
async fn switched_by_its_own_file(binary: &Path, filters: fn(&'static str) -> Filters) {
    let dir = scratch();
    fs::create_dir_all(&dir).unwrap();
    let app = App::failing(Protocol::Http1).await;
    let put = |mode: &'static str| {
        let filters = filters(mode);
        let sidecar = in_front_of(&app, &filters);
        for side in ["inbound", "outbound"] {
            fs::write(dir.join("new"), sidecar.watched_filter(side)).unwrap();
            fs::rename(dir.join("new"), dir.join(format!("{side}.yaml"))).unwrap();
        }
        sidecar.yaml_discovering(&dir)
    };
    let envoy = Envoy::start(binary, &put("observe")).await;
    let client = Client::new(Protocol::Http1);
    let claimed = async || {
        let to = envoy.port("inbound");
        let seen = client.send(to, &http::HeaderMap::new()).await.expect("an answer");
        assert_eq!(seen.status, 500, "of the application");
        !seen.line("onus-claim").is_empty()
    };
    assert!(claimed().await);
    for on in [false, true] {
        put(if on { "observe" } else { "off" });
        until("the switch is in force", async || claimed().await == on).await;
    }
    let connections = envoy.get("/stats?filter=http.inbound.downstream_cx_total").await.unwrap();
    assert_eq!(connections.trim(), "http.inbound.downstream_cx_total: 1", "it is the same one");
    fs::remove_dir_all(&dir).unwrap();
}

/// Waits for an answer with this claim.
async fn told(answers: &mut watch::Receiver<String>, claim: &str) {
    let told = answers.wait_for(|seen| seen == claim);
    timeout(PATIENCE, told).await.expect("it is in force").expect("there is load");
}

const PATIENCE: Duration = Duration::from_secs(30);
