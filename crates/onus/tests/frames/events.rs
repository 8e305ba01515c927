//! Answers that take their time: event streams and long polls pass as they come.

use std::sync::Arc;
use std::time::Duration;

use onus::{Onus, RetryPolicy};
use tokio::sync::Notify;

use super::line::{Line, lines};
use super::relay::{Speaks::Http1, checkout, relay, twice};
use crate::cast::{counted, pass, paused_sockets};

/// What a caller reads of a stream of events, of which each is made when the one before it has
/// arrived; the last one is not flushed on its own.
async fn stream(onus: &Onus) -> Vec<u8> {
    let arrived = Arc::new(Notify::new());
    let next = arrived.clone();
    let stub = lines(move |mut line| {
        let next = next.clone();
        async move {
            line.request().await;
            line.say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n").await;
            line.say("cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n").await;
            for _ in 0..EVENTS {
                next.notified().await;
                line.say("9\r\ndata: a\n\n\r\n").await;
            }
            line.say("9\r\ndata: z\n\n\r\n0\r\n\r\n").await;
        }
    })
    .await;
    let service = relay(onus, Http1, Http1, stub.address).await;
    let mut caller = Line::to(service).await;
    caller.say("GET /events HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let head = caller.head().await.expect("the head comes before the first event");
    let mut all = Vec::new();
    for _ in 0..EVENTS {
        arrived.notify_one();
        all.extend(caller.bytes(14).await.expect("an event comes when it is made"));
    }
    all.extend(caller.drain().await);
    let mut text = format!("{} {:?}", head.first, head.headers).into_bytes();
    // The time of day.
    text.retain(|byte| !byte.is_ascii_digit());
    assert_eq!(counted(onus, "onus_calls_total", &[("outcome", "ok")]), 1);
    text.extend(all);
    text
}

const EVENTS: usize = 20;

#[tokio::test]
async fn events_pass_one_by_one_and_as_they_are() {
    // S11
    let limited = twice().per_try_timeout(Duration::from_millis(500));
    let limited = limited.deadline(Duration::from_secs(1));
    let without = Onus::builder("checkout").build().unwrap();
    let alone = stream(&without).await;
    assert_eq!(alone.windows(6).filter(|bytes| bytes == b"data: ").count(), EVENTS + 1);
    assert!(alone.ends_with(b"data: z\n\n\r\n0\r\n\r\n"));
    for policy in [twice(), limited] {
        assert_eq!(stream(&checkout(policy)).await, alone);
    }
}

#[test]
fn a_long_poll_waits_as_long_as_it_takes() {
    // S11
    const LONG: Duration = Duration::from_secs(3600);
    for policy in [None, Some(twice())] {
        paused_sockets(async {
            let stub = lines(|mut line| async move {
                line.request().await;
                pass(LONG).await;
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n").await;
                pass(LONG).await;
                line.say("yes").await;
            })
            .await;
            let builder = Onus::builder("checkout").enforce();
            let builder = match policy {
                Some(policy) => builder.retry("peer", policy as RetryPolicy),
                None => builder,
            };
            let service = relay(&builder.build().unwrap(), Http1, Http1, stub.address).await;
            let mut caller = Line::to(service).await;
            caller.say("GET /next HTTP/1.1\r\nhost: x\r\n\r\n").await;
            let head = caller.head().await.unwrap();
            assert_eq!(caller.body(&head).await.unwrap().0, "yes");
            assert_eq!(stub.attempts(), ["-"]);
        });
    }
}
