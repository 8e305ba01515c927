//! Floods of HTTP/2 frames.

use super::super::cast::process::until;
use super::Scene;
use super::attacker::{
    Attacker, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM,
    SETTINGS, frame, request, stream,
};

/// What a flood begins with, and what it goes on with in each round.
struct Flood {
    begins: Vec<u8>,
    goes_on: fn(u32) -> Vec<u8>,
}

fn goes_on(goes_on: fn(u32) -> Vec<u8>) -> Flood {
    Flood { begins: Vec::new(), goes_on }
}

/// Floods of one kind over several connections, at both listeners: each connection is closed, and
/// counted as this.
async fn check(flood: Flood, kind: &str) {
    let scene = Scene::new("").await;
    let addresses = [scene.sidecar.inbound, scene.sidecar.outbound];
    for address in addresses.into_iter().cycle().take(CONNECTIONS) {
        let mut attacker = Attacker::to(address).await;
        let mut goes_on = attacker.send(&flood.begins).await;
        let mut sent = 0;
        for round in 0.. {
            let bytes = (flood.goes_on)(round);
            sent += bytes.len();
            if !goes_on || sent > BYTES_MAX {
                break;
            }
            goes_on = attacker.send(&bytes).await;
        }
        assert!(sent <= BYTES_MAX, "{kind}: the flood goes on");
        attacker.ended().await;
    }
    let page = scene.ends().await;
    let label = format!("kind=\"{kind}\"");
    for listener in ["listener=\"inbound\"", "listener=\"outbound\""] {
        let counted = page.sum("onus_proxy_client_errors_total", &[&label, listener]);
        assert_eq!(counted, CONNECTIONS as u64 / 2, "{kind} {listener}");
    }
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_the_connection() {
    // CVE-2023-44487
    let resets = |round| {
        let one = |number| {
            let stream = stream(round * 100 + number);
            let reset = frame(RST_STREAM, 0, stream, &CANCEL);
            [request(stream, END_STREAM | END_HEADERS), reset].concat()
        };
        (0..100).flat_map(one).collect()
    };
    check(goes_on(resets), "http2-flood").await;
}

#[tokio::test]
async fn headers_that_do_not_end_end_the_connection() {
    // CVE-2024-27316
    let begins = request(1, 0);
    let full = |_| frame(CONTINUATION, 0, 1, &b"\x00\x01a\x01b".repeat(3_000));
    check(Flood { begins: begins.clone(), goes_on: full }, "http2-flood").await;
    let empty = |_| frame(CONTINUATION, 0, 1, &[]).repeat(1_000);
    check(Flood { begins, goes_on: empty }, "http2-flood").await;
}

#[tokio::test]
async fn data_without_anything_in_it_ends_the_connection() {
    let begins = request(1, END_HEADERS);
    let empty = |_| frame(DATA, 0, 1, &[]).repeat(1_000);
    check(Flood { begins, goes_on: empty }, "http2-flood").await;
}

#[tokio::test]
async fn control_frames_without_an_end_end_the_connection() {
    check(goes_on(|_| frame(PING, 0, 0, &[7; 8]).repeat(1_000)), "http2-flood").await;
    check(goes_on(|_| frame(SETTINGS, 0, 0, &[]).repeat(1_000)), "http2-flood").await;
    let priority = |_| frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]).repeat(1_000);
    check(goes_on(priority), "http2-flood").await;
}

#[tokio::test]
async fn frames_that_break_the_rules_end_the_connection() {
    // DATA on a stream that nobody opened, headers whose compression is none, a frame in between.
    check(goes_on(|_| frame(DATA, 0, 99, b"x")), "http2-error").await;
    let packed = |round| frame(HEADERS, END_HEADERS, stream(round), &[0xff; 20]);
    check(goes_on(packed), "http2-error").await;
    let between = |_| frame(DATA, 0, 1, b"x");
    check(Flood { begins: request(1, 0), goes_on: between }, "http2-error").await;
}

#[tokio::test]
async fn pings_of_a_client_that_is_served_are_answered() {
    let scene = Scene::new("").await;
    let mut client = Attacker::to(scene.sidecar.inbound).await;
    for round in 0..500 {
        let pings = frame(PING, 0, 0, &[1; 8]).repeat(9);
        let request = request(stream(round), END_STREAM | END_HEADERS);
        assert!(client.send(&[pings, request].concat()).await, "{round}");
        let answered = round.saturating_sub(100) as usize;
        if round % 50 == 0 {
            until("requests are answered", async || scene.stub.executed("/") >= answered).await;
        }
    }
    let page = scene.ends().await;
    assert_eq!(page.sum("onus_proxy_client_errors_total", &[]), 0);
}

const CONNECTIONS: usize = 10;
/// What a connection may send in vain.
const BYTES_MAX: usize = 8 << 20;
const CANCEL: [u8; 4] = [0, 0, 0, 8];
