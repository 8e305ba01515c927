//! A Prometheus that scrapes Envoys as `docs/prometheus/` says has what an analysis reads.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::cast::{Chain, Envoy, Filters, Protocol, Retries, missing, scratch, until};

/// Prometheus; where it is not there `test` is skipped, unless it must not be.
fn prometheus(test: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|dir| dir.join("prometheus")).find(|it| it.is_file());
    if found.is_none() {
        missing(test, "Prometheus", "cargo xtask setup --system");
    }
    found
}

/// A Prometheus that scrapes one Envoy each second, as the example says; it ends when dropped.
fn scraping(prometheus: &Path, envoy: &Envoy, dir: &Path, address: &str) -> Child {
    let example = include_str!("../../../../docs/prometheus/envoy-scrape.yaml");
    let config = example.replace("localhost:9901", &envoy.admin().to_string());
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("scrape.yaml"), format!("global: {{scrape_interval: 1s}}\n{config}"))
        .unwrap();
    Command::new(prometheus)
        .arg(format!("--config.file={}", dir.join("scrape.yaml").display()))
        .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// The value of the first series that matches; 0 without one.
async fn value(address: &str, query: &str) -> u64 {
    let client = Pool::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let uri = format!("http://{address}/api/v1/query?query={query}").parse().unwrap();
    let Ok(answer) = client.get(uri).await else { return 0 };
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let value = &answer["data"]["result"][0]["value"][1];
    value.as_str().and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// The counters of Envoys with these filters are in a store under the names of all hosts.
async fn are_scraped(binary: &Path, prometheus: &Path, filters: Filters) {
    let chain = Chain::broken_at_its_end(
        binary,
        Protocol::Http1,
        &[filters.clone(), filters],
        Retries::On5xx(1),
    )
    .await;
    let dir = scratch();
    // Another process may take it in between, and then nothing is scraped.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let _store = scraping(prometheus, &chain.envoys[0], &dir, &address);
    for series in [
        "onus_edge_requests_total%7Bcaller=%22a%22,callee=%22b%22,callee_outcome=%22error%22,\
         caller_outcome=%22error%22,isolated=%22true%22%7D",
        "onus_calls_total%7Bcaller=%22a%22,callee=%22b%22,outcome=%22error%22%7D",
        "onus_requests_total%7Bservice=%22a%22,outcome=%22error%22,arm=%22enforce%22%7D",
    ] {
        until(series, async || {
            chain.send(1, &[]).await;
            value(&address, &format!("sum({series})")).await > 0
        })
        .await;
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_store_has_the_counters_of_the_module_under_the_names_of_all_hosts() {
    let test = "a_store_has_the_counters_of_the_module";
    let (Some(binary), Some(prometheus)) = (Envoy::binary(test), prometheus(test)) else { return };
    are_scraped(&binary, &prometheus, Filters::module("enforce")).await;
}

#[tokio::test]
async fn a_store_has_the_counters_of_the_plugin_under_the_names_of_all_hosts() {
    let test = "a_store_has_the_counters_of_the_plugin";
    let (Some(binary), Some(prometheus)) = (Envoy::binary_and_plugin(test), prometheus(test))
    else {
        return;
    };
    are_scraped(&binary, &prometheus, Filters::Wasm("enforce")).await;
}
