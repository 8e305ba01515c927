//! `onus audit` as people and tools run it.

mod mesh;
mod page;
mod prometheus;
mod tls;
mod traces;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use self::prometheus::{AT, Prometheus, Series};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs it at the root of the project.
fn onus(arguments: &str, input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    command.env_remove("RUST_LOG").env("COLUMNS", "100").current_dir(root());
    command.args(arguments.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that refuses its arguments does not read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the command ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

const ROUTE: &str = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: \
                     cart, namespace: shop}\nspec: {http: [{retries: {attempts: 2, retryOn: 5xx}, \
                     route: [{destination: {host: cart}}]}]}\n";

#[test]
fn configuration_alone_is_a_list_of_policies() {
    let output = onus("audit -f -", ROUTE);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().next(), Some("Read: 1 file with 1 policy."));
    for part in
        ["│ Istio ┆ cart.shop ┆ any", "POST, PATCH ┆ 5xx", "standard input:4", "who calls whom"]
    {
        assert!(shown.contains(part), "{part:?} in\n{shown}");
    }
}

#[test]
fn a_folder_is_each_file_in_it() {
    let output = onus("audit -f docs/audit -o json", "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["policies"].as_array().map(Vec::len), Some(5));
    assert_eq!(document["policies"][0]["file"], "docs/audit/mesh.yaml");
    let told = "docs/audit/mesh.yaml:128: EnvoyFilter shop/retry-more spec.configPatches[0].patch.\
                value.route.retry_policy: a kind that is not followed, with a field about retries";
    assert_eq!(document["unread"], Value::from(vec![told]));
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_list_of_edges_and_the_configuration_are_enough_for_a_radius() {
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join("audit-edges.csv");
    let edges = "caller,callee\nshop-ingressgateway,web\nweb,checkout\ncheckout,payments\nhalf\n";
    fs::write(&list, edges).expect("a file");
    let output =
        onus(&format!("audit -f docs/audit/mesh.yaml --graph {} -o json", list.display()), "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let api = &document["apis"][0];
    let found = (&api["service"], &api["radius"], &api["amplification"]);
    assert_eq!(found, (&"shop-ingressgateway".into(), &3.into(), &27.0.into()));
    let told = document["unread"][1].as_str().expect("the line is told");
    assert!(told.starts_with(&format!("{}: ", list.display())), "{told}");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn what_a_real_prometheus_says_is_counted_exactly() {
    let test = "what_a_real_prometheus_says_is_counted_exactly";
    let Some(server) = Prometheus::of(test, &mesh::series()) else { return };
    let output =
        onus(&format!("audit -f docs/audit/mesh.yaml --prom {} --at {AT} -o json", server.url), "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let edges = document["edges"].as_array().expect("there are edges");
    for (caller, callee, _, calls, attempts, failed) in mesh::EDGES {
        let edge = edges.iter().find(|edge| edge["caller"] == caller && edge["callee"] == callee);
        let edge = edge.unwrap_or_else(|| panic!("{caller} to {callee}"));
        let close = |field: &str, expected: f64| {
            let found = edge[field].as_f64().expect("it is a number");
            assert!((found / expected - 1.0).abs() < 1e-9, "{callee} {field}: {found}, {expected}");
        };
        close("calls", calls);
        close("attempts_per_call", attempts / calls);
        close("failure_ratio", failed / calls);
    }
    let api = &document["apis"][0];
    let found = (&api["radius"], &api["amplification"], &api["radius_owned"]);
    assert_eq!(found, (&5.into(), &162.0.into(), &1.into()));
    // In half an hour it is half as much.
    let output = onus(&format!("audit --prom {} --at {AT} --window 30m -o json", server.url), "");
    let half: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let calls = |document: &Value| {
        let edges = document["edges"].as_array().expect("there are edges").iter();
        edges.filter_map(|edge| edge["calls"].as_f64()).sum::<f64>()
    };
    assert!((calls(&half) / calls(&document) - 0.5).abs() < 1e-9);
}

#[test]
fn a_real_prometheus_with_linkerd_and_onus_is_understood() {
    let test = "a_real_prometheus_with_linkerd_and_onus_is_understood";
    let mut series = Series::default();
    let linkerd = "namespace=\"shop\",deployment=\"web\",parent_kind=\"Service\",\
                   parent_name=\"cart\",parent_namespace=\"shop\",route_kind=\"default\"";
    // Two protocols with the same labels: their names are all that tells them apart.
    for protocol in ["http", "grpc"] {
        let statuses = format!("outbound_{protocol}_route_request_statuses");
        series.counter(&statuses, &format!("{linkerd},error=\"\""), 600.0);
        series.counter(&format!("outbound_{protocol}_route_retry_requests"), linkerd, 60.0);
    }
    let profile = "direction=\"outbound\",namespace=\"shop\",deployment=\"cart\",\
                   dst=\"stock.shop.svc.cluster.local:80\",classification=\"success\"";
    series.counter("route_response", profile, 600.0);
    series.counter("route_actual_response", profile, 1200.0);
    series.counter("onus_calls", "caller=\"stock\",callee=\"ledger\",outcome=\"ok\"", 600.0);
    series.counter("onus_retries", "caller=\"stock\",callee=\"ledger\",verdict=\"made\"", 300.0);
    series.counter(
        "onus_retries",
        "caller=\"stock\",callee=\"ledger\",verdict=\"succeeded\"",
        99.0,
    );
    let Some(server) = Prometheus::of(test, &series) else { return };
    let output = onus(&format!("audit --prom {} --at {AT} -o json", server.url), "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["unread"], Value::Array(Vec::new()));
    let edges = document["edges"].as_array().expect("there are edges");
    for (callee, calls, seen) in
        [("cart", 1200.0, 1.1), ("stock", 600.0, 2.0), ("ledger", 600.0, 1.5)]
    {
        let edge = edges.iter().find(|edge| edge["callee"] == callee).expect(callee);
        for (field, expected) in [("calls", calls), ("attempts_per_call", seen)] {
            let found = edge[field].as_f64().expect("it is a number");
            assert!((found - expected).abs() < 1e-6, "{callee} {field}: {found}");
        }
    }
    // Names of three sources are one chain.
    assert_eq!(document["apis"][0]["path"], Value::from(vec!["web", "cart", "stock", "ledger"]));
}

#[test]
fn a_prometheus_without_a_mesh_is_told() {
    let test = "a_prometheus_without_a_mesh_is_told";
    let mut series = Series::default();
    series.counter("http_requests", "job=\"shop\"", 5.0);
    let Some(server) = Prometheus::of(test, &series) else { return };
    let output = onus(&format!("audit --prom {} --at {AT}", server.url), "");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    let shown = text(&output.stdout);
    assert!(shown.starts_with("Read: no series of a mesh.\n"), "{shown}");
    // What the server does not understand is told with the question.
    let output = onus(&format!("audit --prom {} --at yesterday", server.url), "");
    assert_eq!(output.status.code(), Some(3));
    let shown = text(&output.stdout);
    assert!(shown.contains("the server refuses the query: invalid parameter \"time\""), "{shown}");
}

/// A server that answers everything so, as long as it is asked.
fn server(answer: &'static str) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("it has one");
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let mut request = [0; 16 << 10];
            let _ = client.read(&mut request);
            let _ = client.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

#[test]
fn a_server_that_is_none_is_an_error() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let nobody = format!("http://{}", listener.local_addr().expect("it has one"));
    drop(listener);
    let page = server("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>");
    let login = server("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    for (url, expected) in [
        (&nobody, ": connect to"),
        (&page, ": the answer is not Prometheus's: expected value at line 1 column 1\n"),
        (&login, " without --prom-token-file: the server answers 403 Forbidden\n"),
    ] {
        let output = onus(&format!("audit --prom {url}"), "");
        let told = text(&output.stderr);
        let begin = format!("error: failed to ask {url}{expected}");
        assert!(told.starts_with(&begin), "{told}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    }
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    for (arguments, expected) in [
        ("audit", "<--file <FILE>|--prom <URL>|--traces <FILE>|--graph <FILE>>"),
        ("audit --prom localhost:9090", "error: `localhost:9090` is no URL; one such as"),
        ("audit -f a.yaml --prom-ca ca.pem", "--prom <URL>"),
        ("audit -f a.yaml --prom-token-file token", "--prom <URL>"),
        ("audit --prom http://a:b@c", "error: the URL has a user and a password"),
        ("audit --prom http://c --window 1h]))", "error: --window is `1h]))`; a time such as"),
        ("audit --prom http://c --window h", "error: --window is `h`; a time such as"),
        ("audit -f a.yaml --window 2h", "--prom <URL>"),
        ("audit -f - --traces -", "error: standard input can be read once only"),
    ] {
        let output = onus(arguments, "");
        let told = text(&output.stderr);
        assert!(told.contains(expected), "{arguments}: {told}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{arguments}");
    }
    let output = onus("audit -f no-such-file.yaml", "");
    let told = text(&output.stderr);
    assert!(told.starts_with("error: failed to read no-such-file.yaml: "), "{told}");
    assert_eq!(output.status.code(), Some(1));
    let output = onus("audit -f bench/benches", "");
    let told = "error: failed to read bench/benches: no file in it is YAML or JSON by its name\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), told));
}

#[test]
fn what_cannot_be_read_ends_with_3() {
    let broken = format!("{ROUTE}---\nkind: {{{{ .Values.kind }}}}\n");
    let output = onus("audit -f - -o markdown", &broken);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(3), ""));
    let shown = text(&output.stdout);
    let told = "\n## What could not be read\n\n- standard input:6: ";
    assert!(shown.contains(told), "{shown}");
    assert!(shown.contains("| Istio | cart.shop | any | 3 | 5xx |"), "{shown}");
    // A dump that was cut is told beside it.
    let output = onus("audit --traces -", "{\"data\": [{\"traceID\": \"1\"");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("standard input: byte"), "{}", text(&output.stdout));
}

#[test]
fn what_cannot_be_read_is_told_as_far_as_people_read() {
    let broken = "---\na: [\n".repeat(45);
    let shown = |output: &Output| text(&output.stdout).to_owned();
    let table = shown(&onus("audit -f -", &broken));
    assert_eq!(table.matches("document skipped").count(), 30, "{table}");
    assert!(table.contains("  - and 15 more, which `-o json` lists\n"), "{table}");
    let all: Value =
        serde_json::from_str(&shown(&onus("audit -f - -o json", &broken))).expect("JSON");
    assert_eq!(all["unread"].as_array().map(Vec::len), Some(45));
}

#[test]
fn help_is_as_reviewed() {
    let output = onus("audit --help", "");
    assert_eq!(text(&output.stdout), include_str!("help.txt"));
}
