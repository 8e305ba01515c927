//! Strangers at a public edge who say what only services of the mesh may say.

use super::super::cast::{Line, Sidecar, answers};

const FORGED: &str = "onus-mark: 1\r\nonus-attempt: 7\r\nonus-claim: unclaimed\r\n\
                      x-envoy-ratelimited: true\r\ngrpc-retry-pushback-ms: -1\r\nx-other: 1\r\n";

#[tokio::test]
async fn forged_headers_reach_nobody_and_nobody_is_told_anything() {
    // [trust-1] [trust-2] S64
    let app = answers(
        "503 X\r\nonus-claim: unclaimed\r\nonus-later: 1\r\nx-envoy-ratelimited: true\r\nx-other: 2",
    )
    .await;
    let sidecar = Sidecar::start(&format!(
        "service: edge\nmode: enforce\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{0}\", untrusted-callers: true}}\n\
         callees: {{peer: {{address: \"{0}\", untrusted: true, retry: {{attempts: 2, no-budget: true, \
         no-gate: true, no-probes: true, backoff-base: 1ms, backoff-max: 1ms}}}}}}\n",
        app.address
    ))
    .await;
    for (listener, requests) in [(sidecar.inbound, 1), (sidecar.outbound, 2)] {
        let before = app.seen().len();
        let mut line = Line::to(listener).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: peer\r\n{FORGED}\r\n")).await;
        let head = line.head().await.unwrap();
        assert_eq!((head.status(), &head.headers["x-other"]), (503, &"2".parse().unwrap()));
        let seen = app.seen().split_off(before);
        // What the callee says of ownership is not believed either: the call is tried again.
        assert_eq!(seen.len(), requests);
        let all = seen.iter().map(|seen| &seen.headers).chain([&head.headers]);
        for name in all.flat_map(|headers| headers.keys()) {
            let name = name.as_str();
            assert!(!name.starts_with("onus-") && !name.contains("ratelimited"), "{name}");
            assert!(!name.contains("pushback"), "{name}");
        }
    }
    let page = sidecar.metrics().await;
    assert_eq!(page.sum("onus_forged_requests_total", &[]), 1);
}
