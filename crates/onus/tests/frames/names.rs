//! Headers on their way through both layers: of the attempt that is answered, and as they were.

use onus::{Onus, RetryPolicy};

use super::line::{Head, Line, lines};
use super::relay::{Speaks::Http1, checkout, relay, twice};
use crate::cast::counted;

const FAILS: &str = "HTTP/1.1 503 Busy\r\nSet-Cookie: a=1\r\nRetry-After: 0\r\nX-First: 1\r\n\
                     onus-claim: claimed;reason=own\r\ncontent-length: 0\r\n\r\n";

/// Asks a service that passes the request on to a stub, which fails so many times before it
/// answers. The head that the caller gets, and the one that the last attempt brought.
async fn ask(
    onus: &Onus,
    fails: usize,
    request: &[u8],
    answer: &'static [u8],
) -> (Head, Head, Vec<String>) {
    let (brought, mut last) = tokio::sync::mpsc::unbounded_channel();
    let stub = lines(move |mut line| {
        let brought = brought.clone();
        async move {
            while let Some(head) = line.head().await {
                line.rest_of(head.clone()).await;
                brought.send(head).unwrap();
                if line.requests() > fails {
                    line.say(answer).await;
                } else {
                    line.say(FAILS).await;
                }
            }
        }
    })
    .await;
    let service = relay(onus, Http1, Http1, stub.address).await;
    let mut caller = Line::to(service).await;
    caller.say(request).await;
    let got = caller.head().await.unwrap();
    let mut sent = last.recv().await.unwrap();
    while let Ok(head) = last.try_recv() {
        sent = head;
    }
    (got, sent, stub.attempts())
}

#[tokio::test]
async fn headers_of_a_failed_attempt_stay_with_it() {
    // [wire-9] S62
    let answer =
        b"HTTP/1.1 200 OK\r\nset-cookie: b=2\r\nset-cookie: c=3\r\ncontent-length: 0\r\n\r\n";
    let (got, _, attempts) =
        ask(&checkout(twice()), 1, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", answer).await;
    assert_eq!(attempts, ["-", "2"]);
    let cookies: Vec<_> = got.headers.get_all("set-cookie").iter().collect();
    assert_eq!(got.status(), 200);
    assert_eq!(cookies, ["b=2", "c=3"]);
    for name in ["retry-after", "x-first", "onus-claim", "x-envoy-ratelimited"] {
        assert!(!got.headers.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn attempts_are_numbered_without_gaps() {
    // [attempt-1] S63
    for most in 2..=6 {
        for fails in 0..=7 {
            let policy = RetryPolicy::attempts(most).no_budget();
            let onus = checkout(policy.backoff(Default::default(), Default::default()));
            let (_, _, attempts) =
                ask(&onus, fails, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", FINE).await;
            let sent = most.min(u32::try_from(fails).unwrap() + 1);
            let number = |n: u32| if n == 1 { "-".to_owned() } else { n.to_string() };
            assert_eq!(attempts, (1..=sent).map(number).collect::<Vec<_>>());
            let made = counted(&onus, "onus_retries_total", &[("verdict", "made")]);
            assert_eq!(made, u64::from(sent - 1));
        }
    }
}

const FINE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn names_and_values_arrive_as_they_were_written() {
    // S60
    let long = "v".repeat(6000);
    let request = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX-Organization: \u{e9}t\u{e9}\r\nX-ODD-Case: 1\r\n\
         X-Empty:\r\nX-Twice: 1\r\nX-Twice: 2\r\nX-Long: {long}\r\n\r\n"
    );
    let answer = "HTTP/1.1 200 OK\r\nX-Organization: \u{e9}\r\nWWW-Authenticate: a\r\n\
                  X-Other: 1\r\nWWW-Authenticate: b\r\nContent-Length: 0\r\n\r\n";
    for fails in [0, 1] {
        let onus = checkout(twice());
        let (got, sent, _) = ask(&onus, fails, request.as_bytes(), answer.as_bytes()).await;
        let long = format!("X-Long: {long}");
        for line in
            ["X-Organization: \u{e9}t\u{e9}", "X-ODD-Case: 1", "X-Twice: 1", "X-Twice: 2", &long]
        {
            assert!(sent.lines.iter().any(|has| has == line), "{line} {:?}", sent.lines);
        }
        assert_eq!(sent.headers["x-empty"], "");
        let twice: Vec<_> = sent.headers.get_all("x-twice").iter().collect();
        assert_eq!(twice, ["1", "2"], "in their order");
        for line in
            ["X-Organization: \u{e9}", "WWW-Authenticate: a", "WWW-Authenticate: b", "X-Other: 1"]
        {
            assert!(got.lines.iter().any(|has| has == line), "{line} {:?}", got.lines);
        }
    }
}
