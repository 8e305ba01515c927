//! Answers that have no body, whatever their headers say of one.

use super::line::{Line, lines};
use super::relay::{Speaks::Http1, checkout, relay, twice};
use crate::cast::{counted, until};

/// A request and one more behind it in the same packet. The stub answers the first with `answer`,
/// and closes behind it or not.
async fn check(method: &str, answer: &'static str, closes: bool) {
    let stub = lines(move |mut line| async move {
        while let Some(seen) = line.request().await {
            if seen.uri.path() == "/first" {
                line.say(answer).await;
                if closes {
                    return;
                }
            } else {
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext").await;
            }
        }
    })
    .await;
    let onus = checkout(twice());
    let service = relay(&onus, Http1, Http1, stub.address).await;
    let mut caller = Line::to(service).await;
    let both =
        format!("{method} /first HTTP/1.1\r\nhost: x\r\n\r\nGET /next HTTP/1.1\r\nhost: x\r\n\r\n");
    caller.say(both).await;
    let first = caller.head().await.expect("an answer");
    assert!(answer.contains(&first.status().to_string()), "{answer:?}");
    let next = caller.head().await.expect("an answer behind it, and no body before it");
    assert_eq!(next.status(), 200, "{answer:?}");
    assert_eq!(caller.body(&next).await.unwrap().0, "next");
    assert_eq!(stub.attempts(), ["-", "-"], "{answer:?}");
    let calls = |outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]);
    until(|| calls("ok") == 2).await;
    assert_eq!((calls("error"), calls("abandoned")), (0, 0), "{answer:?}");
    let requests = |outcome| counted(&onus, "onus_requests_total", &[("outcome", outcome)]);
    until(|| requests("ok") == 2).await;
    // The caller is still there, and so is its connection.
    assert_eq!(requests("cancelled"), 0);
}

#[tokio::test]
async fn an_answer_without_a_body_is_whole_at_its_head() {
    // S13
    for closes in [false, true] {
        check("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", closes).await;
        check("HEAD", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", closes).await;
        check("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", closes).await;
        check("GET", "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n", closes).await;
        check("GET", "HTTP/1.1 204 No Content\r\n\r\n", closes).await;
        check("DELETE", "HTTP/1.1 204 No Content\r\n\r\n", closes).await;
    }
}
