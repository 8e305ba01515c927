//! Many requests, some of which fail and some of which are given up: nothing is left of any of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::cast::process::until;
use super::cast::{Line, Sidecar, lines, relay};

/// What became of requests.
#[derive(Debug, Default)]
struct Sums {
    ok: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

/// Sends requests of these numbers, each when the one before has ended; one in twenty is given up
/// after a time that is another each time.
async fn send(to: SocketAddr, numbers: Arc<AtomicU64>, end: u64, sums: Arc<Sums>) {
    let mut line = None;
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return;
        }
        let mut to = match line.take() {
            Some(line) => line,
            None => Line::to(to).await,
        };
        let trace = format!("traceparent: 00-{:032x}-{:016x}-01", number + 1, number + 1);
        to.say(format!("GET /?n={number} HTTP/1.1\r\nhost: a\r\n{trace}\r\n\r\n")).await;
        let draws = fastrand::u32(0..20);
        let patience = if draws == 0 { fastrand::u64(0..3_000) } else { u64::MAX };
        let Ok(head) = timeout(Duration::from_micros(patience), to.head()).await else {
            sums.given_up.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        match head.expect("an answer").status() {
            200 => &sums.ok,
            503 => &sums.failed,
            status => panic!("{status}"),
        }
        .fetch_add(1, Ordering::Relaxed);
        line = Some(to);
    }
}

/// `ONUS_REQUESTS=1000000` makes it a million.
#[tokio::test]
async fn of_many_requests_with_errors_and_cancellations_nothing_is_left() {
    let requests = std::env::var("ONUS_REQUESTS").ok().and_then(|text| text.parse().ok());
    let requests: u64 = requests.unwrap_or(5_000);
    // One in twenty fails, however often it is tried.
    let callee = lines(|mut line| async move {
        while let Some(head) = line.head().await {
            let number: u64 = head.first.split(['=', ' ']).nth(2).unwrap().parse().unwrap();
            let status = if number % 20 == 7 { "503 X" } else { "200 OK" };
            line.say(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")).await;
        }
    })
    .await;
    let (app, tell) = relay().await;
    let sidecar = Sidecar::start(&format!(
        "service: many\nmode: enforce\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n\
         callees: {{peer: {{address: \"{}\", retry: {{attempts: 2, backoff-base: 1ms, \
         backoff-max: 2ms}}}}}}\n",
        app.address, callee.address
    ))
    .await;
    tell.send_replace(Some(sidecar.outbound));
    let (numbers, sums) = (Arc::new(AtomicU64::new(0)), Arc::new(Sums::default()));
    let mut memory = Vec::new();
    // Growth would show between the second quarter and the last.
    for quarter in 1..=4 {
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let end = requests * quarter / 4;
            clients.spawn(send(sidecar.inbound, numbers.clone(), end, sums.clone()));
        }
        clients.join_all().await;
        numbers.store(requests * quarter / 4, Ordering::Relaxed);
        memory.push(sidecar.memory().0);
    }
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (ok, failed, given_up) = (read(&sums.ok), read(&sums.failed), read(&sums.given_up));
    assert_eq!(ok + failed + given_up, requests);
    assert!(failed > requests / 50 && given_up > requests / 100, "{sums:?}");
    until("nothing is left of requests", async || {
        let page = sidecar.metrics().await;
        GAUGES.into_iter().all(|gauge| page.sum(gauge, &[]) == 0)
    })
    .await;
    let page = sidecar.metrics().await;
    let answered = page.sum("onus_requests_total", &["outcome=\"ok\""]);
    assert!((ok..=ok + given_up).contains(&answered), "{answered} {sums:?}");
    assert_eq!(page.sum("onus_faults_total", &[]) + page.sum("onus_overflows_total", &[]), 0);
    println!("{requests} requests: {sums:?}; KiB after each quarter: {memory:?}");
    assert!(memory[3] < memory[1] + memory[1] / 10, "{memory:?}");
}

/// What there is of a request while it lasts.
const GAUGES: [&str; 5] = [
    "onus_proxy_requests",
    "onus_correlation_entries",
    "onus_proxy_replay_bytes",
    "onus_proxy_callee_waiting",
    "onus_proxy_tunnels",
];
const CLIENTS: usize = 32;
