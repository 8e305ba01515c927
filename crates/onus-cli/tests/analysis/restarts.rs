//! Whatever is answered is counted, and counted once, whenever the process dies.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use onus::report::Analysis;
use serde_json::Value;

use super::server::{Folder, Server, until};
use super::service::{Broken, Service};

const SERVICES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const REPLICAS: usize = 3;
const KILLS: u32 = 6;

/// A port that nobody has, for processes that follow one another on it. It is below those that the
/// system gives to clients, or one of them might have it meanwhile.
pub(crate) fn free_address() -> SocketAddr {
    let listen = || TcpListener::bind(("127.0.0.1", fastrand::u16(10_000..32_000))).ok();
    let listener = (0..1_000).find_map(|_| listen()).expect("a port is free");
    listener.local_addr().expect("it has an address")
}

/// Calls and failures of each service, as the services themselves have counted them.
fn own_counts(services: &[Service]) -> Vec<(String, u64, u64)> {
    SERVICES
        .iter()
        .map(|&name| {
            let replicas =
                services.iter().filter(|service| **service.onus.agent().service() == *name);
            let totals = replicas.flat_map(|service| {
                let edges: Vec<_> =
                    service.onus.agent().edges().map(|edge| edge.totals()).collect();
                edges
            });
            let counts = totals.fold((0, 0), |(calls, failed), totals| {
                (calls + totals.calls.iter().sum::<u64>(), failed + totals.calls[1])
            });
            (name.to_owned(), counts.0, counts.1)
        })
        .collect()
}

/// The same, as the analysis has counted them.
fn counted(server: &Server) -> Vec<(String, u64, u64)> {
    let output = server.onus(&["edges", "-o", "json"]);
    let page: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let edges = page["edges"].as_array().expect("a list");
    let of = |name: &str| {
        let own = edges.iter().filter(|edge| edge["caller"] == name);
        own.fold((0, 0), |(calls, failed), edge| {
            let count = |field: &str| edge["counts"][field].as_u64().unwrap_or(0);
            (calls + count("calls_ok") + count("calls_failed"), failed + count("calls_failed"))
        })
    };
    SERVICES.iter().map(|&name| (name.to_owned(), of(name).0, of(name).1)).collect()
}

/// Sends report after report until nobody answers; tells of each answer, and then how many came.
fn report_until_killed(url: &str, first: u64, answered: &mpsc::Sender<()>) -> u64 {
    let mut sequence = first;
    let address = url.trim_start_matches("http://");
    loop {
        let body = one_call(sequence);
        let answer = || {
            let mut stream = TcpStream::connect(address).ok()?;
            let length = body.len();
            let head = format!(
                "POST /api/v1/reports HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                 content-length: {length}\r\n\r\n"
            );
            stream.write_all((head + &body).as_bytes()).ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            text.starts_with("HTTP/1.1 200").then_some(())
        };
        if answer().is_none() {
            return sequence - first;
        }
        sequence += 1;
        let _ = answered.send(());
    }
}

fn one_call(sequence: u64) -> String {
    let report = serde_json::json!({
        "schema_version": 1, "service": "a", "instance": "1", "sequence": sequence, "at": 0,
        "edges": [{"callee": "b", "procedure": "/", "counts": {"calls_ok": 1}}],
    });
    report.to_string()
}

#[tokio::test]
async fn a_report_under_way_at_a_kill_counts_once() {
    let folder = Folder::new();
    let address = free_address().to_string();
    let mut server = Server::start(&folder, &address, "");
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut stored = 0;
    for _ in 0..10 {
        let (sender, answered) = mpsc::channel();
        let url = server.url.clone();
        let reports = thread::spawn(move || report_until_killed(&url, stored + 1, &sender));
        for _ in 0..random.u32(1..30) {
            answered.recv().expect("a report is answered");
        }
        server.kill();
        stored += reports.join().expect("it ends");
        server = Server::start(&folder, &address, "");
        let first = counted(&server)[0].1;
        assert!(first == stored || first == stored + 1, "{first} of {stored}, seed {seed}");
        // Whoever got no answer sends the same again.
        stored += 1;
        let (status, text) = server.post("/api/v1/reports", &one_call(stored));
        assert_eq!(status, 200, "{text}");
        let repeated = first == stored;
        assert!(text.contains(&format!("\"repeated\":{repeated}")), "seed {seed}: {text}");
        assert_eq!(counted(&server)[0].1, stored, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_counted_twice_when_it_is_killed_at_random() {
    let folder = Folder::new();
    let address = free_address().to_string();
    let mut server = Server::start(&folder, &address, "");
    let url = format!("http://{address}");
    let services: Vec<Service> = SERVICES
        .iter()
        .flat_map(|&name| std::iter::repeat_n(name, REPLICAS))
        .map(|name| Service::start(name, Analysis::at(&url).interval(Duration::from_secs(1))))
        .collect();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..KILLS {
        let mut calls = 0;
        let until_kill =
            tokio::time::Instant::now() + Duration::from_millis(random.u64(100..1_000));
        while tokio::time::Instant::now() < until_kill || calls < 50 {
            let service = &services[random.usize(..services.len())];
            let broken = [Broken::Nothing, Broken::Payments, Broken::Recs][random.usize(..3)];
            service.serve(broken).await;
            calls += 1;
            // Reports leave while requests come in.
            tokio::task::yield_now().await;
        }
        server.kill();
        server = Server::start(&folder, &address, "");
    }
    let own = own_counts(&services);
    for service in services {
        service.reporter.finish().await;
    }
    // A report that found nobody is sent again, but not by who has ended.
    until("the counts are the services' own", async || counted(&server) == own).await;
    assert_eq!(counted(&server), own, "seed {seed}");
    server.kill();
    let server = Server::start(&folder, &address, "");
    assert_eq!(counted(&server), own, "seed {seed}: after one more restart");
}
