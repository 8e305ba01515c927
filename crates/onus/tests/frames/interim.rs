//! Interim answers: they say nothing about how a call ends.

use std::time::Duration;

use super::line::{Line, lines};
use super::relay::{Speaks::Http1, Speaks::Http2, checkout, relay, twice};
use super::streams::streams;
use crate::cast::{counted, pass, paused_sockets, said};

const FAILS: &str =
    "HTTP/1.1 503 Busy\r\nonus-claim: claimed;reason=own\r\ncontent-length: 0\r\n\r\n";
const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";

const LIMIT: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Fails,
    Resets,
}

/// A caller that waits for 100 before it sends its body to a service, which passes it on to a
/// stub: at every attempt that says `interim`, and goes on as told at the first `fails`.
///
/// Final status, claim, interim answers that reached the caller, and the stub's attempts.
fn call(interim: &'static str, then: Then, fails: usize) -> (u16, String, Vec<u16>, usize) {
    paused_sockets(async {
        let stub = lines(move |mut line| async move {
            while let Some(head) = line.head().await {
                line.say(interim).await;
                let body = line.rest_of(head).await.expect("its body").body;
                assert_eq!(body, "17 EUR");
                match then {
                    _ if line.requests() > fails => line.say(FINE).await,
                    Then::Nothing => pass(LIMIT).await,
                    Then::Fails => line.say(FAILS).await,
                    Then::Resets => return line.reset(),
                }
            }
        })
        .await;
        let policy = twice().per_try_timeout(LIMIT);
        let onus = checkout(policy);
        let service = relay(&onus, Http1, Http1, stub.address).await;
        let mut caller = Line::to(service).await;
        caller
            .say("POST /pay HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 6\r\n\r\n")
            .await;
        let mut interims = Vec::new();
        loop {
            let head = caller.head().await.expect("an answer");
            if head.status() >= 200 {
                let calls = counted(&onus, "onus_calls_total", &[]);
                assert_eq!(calls, 1, "interim answers are no outcome");
                break (head.status(), said(&head.headers), interims, stub.seen().len());
            }
            interims.push(head.status());
            caller.say("17 EUR").await;
        }
    })
}

#[test]
fn an_interim_answer_commits_to_nothing() {
    // S12
    const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
    const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    for interim in
        [CONTINUE, HINTS, "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"]
    {
        for then in [Then::Nothing, Then::Fails, Then::Resets] {
            let healed = (200, "nothing".to_owned(), vec![100], 2);
            assert_eq!(call(interim, then, 1), healed, "{interim} {then:?}");
            let status = match then {
                Then::Nothing => 504,
                Then::Fails => 503,
                Then::Resets => 502,
            };
            let failed = (status, "unclaimed exhausted".to_owned(), vec![100], 2);
            assert_eq!(call(interim, then, 2), failed, "{interim} {then:?}");
        }
    }
}

#[tokio::test]
async fn an_interim_block_is_no_head() {
    // S12
    let stub = streams(|mut stream| async move {
        stream.request().await;
        stream.interim(100);
        stream.interim(103);
        let status = if stream.number == 0 { 500 } else { 200 };
        stream.ends(status, &[]);
    })
    .await;
    let service = relay(&checkout(twice()), Http1, Http2, stub.address).await;
    let mut caller = Line::to(service).await;
    caller.say("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(caller.head().await.unwrap().status(), 200);
    assert_eq!(stub.attempts(), ["-", "2 marked"]);
}
