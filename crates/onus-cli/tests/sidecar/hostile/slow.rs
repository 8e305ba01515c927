//! Clients that hold what they can: heads and bodies that do not end, answers that nobody reads.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use super::super::cast::process::until;
use super::super::cast::{Line, lines};
use super::Scene;

const LIMITS: &str = "limits: {header-timeout: 200ms, idle-timeout: 400ms}\n";

#[tokio::test]
async fn heads_that_come_byte_by_byte_are_cut_off_and_counted() {
    let scene = Scene::new(LIMITS).await;
    let mut slow = Vec::new();
    for _ in 0..HELD {
        let mut stream = TcpStream::connect(scene.sidecar.inbound).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: peer\r\n").await.unwrap();
        slow.push(tokio::spawn(async move {
            // A field now and then keeps nobody from seeing that the head does not end.
            let mut pace = interval(Duration::from_millis(50));
            while stream.write_all(b"x: 1\r\n").await.is_ok() {
                pace.tick().await;
            }
        }));
    }
    for held in slow {
        timeout(Duration::from_secs(30), held).await.expect("it is cut off").unwrap();
    }
    let page = scene.ends().await;
    let cut = page.sum("onus_proxy_slow_heads_total", &["listener=\"inbound\""]);
    assert_eq!(cut, HELD as u64);
}

#[tokio::test]
async fn bodies_that_do_not_end_hold_no_memory_and_nobody_up() {
    let scene = Scene::new("").await;
    let mut held = Vec::new();
    for listener in [scene.sidecar.inbound, scene.sidecar.outbound] {
        for _ in 0..HELD / 2 {
            let mut line = Line::to(listener).await;
            line.say("POST /slow HTTP/1.1\r\nhost: peer\r\ncontent-length: 1000000\r\n\r\nsome")
                .await;
            held.push(line);
        }
    }
    until("they are under way", async || {
        scene.sidecar.metrics().await.sum("onus_proxy_requests", &[]) >= HELD as u64
    })
    .await;
    drop(held);
    until("all of them are forgotten", async || {
        let page = scene.sidecar.metrics().await;
        page.sum("onus_proxy_requests", &[]) <= 1 && page.sum("onus_proxy_replay_bytes", &[]) == 0
    })
    .await;
    scene.ends().await;
}

#[tokio::test]
async fn answers_that_nobody_reads_hold_no_memory_and_nobody_up() {
    // Much for everybody but the neighbour.
    let much = Bytes::from(vec![b'a'; 8 << 20]);
    let stub = lines(move |mut line| {
        let much = much.clone();
        async move {
            while let Some(seen) = line.request().await {
                let body = if seen.uri == "/neighbour" { Bytes::new() } else { much.clone() };
                let length = body.len();
                line.say(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n")).await;
                line.say(body).await;
            }
        }
    })
    .await;
    let scene = Scene::of(stub, "").await;
    let mut held = Vec::new();
    for _ in 0..HELD {
        let mut line = Line::to(scene.sidecar.inbound).await;
        line.say("GET /large HTTP/1.1\r\nhost: peer\r\n\r\n").await;
        held.push(line);
    }
    until("they are under way", async || scene.stub.executed("/large") == HELD).await;
    drop(held);
    until("all of them are forgotten", async || {
        scene.sidecar.metrics().await.sum("onus_proxy_requests", &[]) <= 1
    })
    .await;
    scene.ends().await;
}

const HELD: usize = 50;
