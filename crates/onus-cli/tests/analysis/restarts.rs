//! Whatever is answered is counted, and counted once, whenever the process dies.

use std::net::{SocketAddr, TcpListener};
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
