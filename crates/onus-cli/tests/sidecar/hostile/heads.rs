//! Heads that are too large, or have two meanings.

use super::super::cast::Line;
use super::Scene;
use super::attacker::{Attacker, CONTINUATION, END_HEADERS, END_STREAM, frame, request};

/// Sends these bytes to both listeners; each time they are refused with this status, and counted.
async fn check(bytes: &[u8], status: u16, kind: &str) {
    let scene = Scene::new("").await;
    for address in [scene.sidecar.inbound, scene.sidecar.outbound] {
        for _ in 0..TIMES {
            let mut line = Line::to(address).await;
            line.say(bytes).await;
            // Who is cut off while it sends may lose the answer with the connection.
            if let Some(head) = line.head().await {
                assert_eq!(head.status(), status, "{kind}");
            }
        }
    }
    assert!(scene.stub.seen().iter().all(|seen| seen.uri == "/neighbour"), "none goes further");
    let page = scene.ends().await;
    let label = format!("kind=\"{kind}\"");
    for listener in ["listener=\"inbound\"", "listener=\"outbound\""] {
        let counted = page.sum("onus_proxy_client_errors_total", &[&label, listener]);
        assert_eq!(counted, TIMES, "{kind} {listener}");
    }
}

#[tokio::test]
async fn a_head_of_a_megabyte_is_refused_and_counted() {
    let start = "GET / HTTP/1.1\r\nhost: peer\r\n";
    let one = format!("{start}x: {}\r\n\r\n", "a".repeat(1 << 20));
    check(one.as_bytes(), 431, "large-head").await;
    let many: String = (0..30_000).map(|number| format!("x-{number}: {number:024}\r\n")).collect();
    check(format!("{start}{many}\r\n").as_bytes(), 431, "large-head").await;
    let target = format!("GET /{} HTTP/1.1\r\nhost: peer\r\n\r\n", "a".repeat(1 << 20));
    check(target.as_bytes(), 431, "large-head").await;
}

#[tokio::test]
async fn a_head_of_a_megabyte_in_frames_ends_the_connection() {
    let scene = Scene::new("").await;
    for _ in 0..TIMES {
        let mut attacker = Attacker::to(scene.sidecar.inbound).await;
        attacker.send(&request(1, END_STREAM)).await;
        // A field of 16,000 bytes in each frame.
        let field = [&b"\x00\x01a\x7f\x81\x7c"[..], &[b'x'; 16_000]].concat();
        for number in 0..64 {
            let flags = if number == 63 { END_HEADERS } else { 0 };
            attacker.send(&frame(CONTINUATION, flags, 1, &field)).await;
        }
        assert_eq!(attacker.ended().await, Some(ENHANCE_YOUR_CALM));
    }
    let page = scene.ends().await;
    let counted = page.sum("onus_proxy_client_errors_total", &["kind=\"http2-flood\""]);
    assert_eq!(counted, TIMES);
}

#[tokio::test]
async fn a_request_with_two_meanings_is_counted() {
    let hosts = "GET / HTTP/1.1\r\nhost: peer\r\nhost: other\r\n\r\n";
    check(hosts.as_bytes(), 400, "ambiguous").await;
    let coding = "POST / HTTP/1.1\r\nhost: peer\r\ntransfer-encoding: identity\r\n\
                  transfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    check(coding.as_bytes(), 400, "ambiguous").await;
    let lengths =
        "POST / HTTP/1.1\r\nhost: peer\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab";
    check(lengths.as_bytes(), 400, "malformed").await;
    check(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n", 400, "malformed")
        .await;
}

const TIMES: u64 = 20;
const ENHANCE_YOUR_CALM: u32 = 11;
