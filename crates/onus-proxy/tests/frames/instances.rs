//! A callee with several instances.

use crate::cast::TWICE;
use crate::cast::{Line, Stub, between, lines};

async fn stub(answer: &'static str) -> Stub {
    lines(move |mut line| async move {
        while line.request().await.is_some() {
            line.say(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n")).await;
        }
    })
    .await
}

async fn get(line: &mut Line) -> u16 {
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = line.head().await.expect("as the test sets it up");
    line.body(&head).await.expect("as the test sets it up");
    head.status()
}

#[tokio::test]
async fn a_retry_goes_to_another_instance() {
    // S96 S73
    let (sick, well, other) = (stub("503 X").await, stub("200 OK").await, stub("200 OK").await);
    let instances = [sick.address, well.address, other.address];
    let proxy = between(well.address, &instances, &format!(", {TWICE}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    for _ in 0..30 {
        assert_eq!(get(&mut line).await, 200);
    }
    let asked = [&sick, &well, &other].map(|stub| stub.seen().len());
    assert_eq!(asked, [15; 3], "attempts are spread evenly");
}

#[tokio::test]
async fn a_retry_goes_to_the_only_instance_where_there_is_no_other() {
    let sick = stub("503 X").await;
    let proxy = between(sick.address, &[sick.address], &format!(", {TWICE}")).await;
    assert_eq!(get(&mut Line::to(proxy.outbound()).await).await, 503);
    assert_eq!(sick.seen().len(), 2);
}

#[tokio::test]
async fn an_instance_that_cannot_be_reached_is_asked_after_the_others() {
    let well = stub("200 OK").await;
    let gone = stub("200 OK").await.address;
    let proxy = between(well.address, &[gone, well.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(get(&mut line).await);
    }
    let failed = statuses.iter().filter(|status| **status == 503).count();
    assert_eq!(failed, 1, "{statuses:?}");
}
