//! A proxy that ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::admin::get;
use crate::cast::{Line, between, lines, proxy};

#[tokio::test]
async fn what_is_under_way_is_answered_and_the_application_goes_on_calling() {
    // S93 S94
    let release = Arc::new(Notify::new());
    let released = release.clone();
    let app = lines(move |mut line| {
        let released = released.clone();
        async move {
            while line.request().await.is_some() {
                released.notified().await;
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            }
        }
    })
    .await;
    let callee = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = between(app.address, &[callee.address], "").await;
    let (inbound, outbound, admin) = (proxy.inbound(), proxy.outbound(), proxy.admin());
    let mut request = Line::to(inbound).await;
    request.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut call = Line::to(outbound).await;
    while app.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let drained = tokio::spawn(proxy.drain());
    let not_ready = async {
        while get(admin, "/readyz").await.0 == 200 {
            sleep(Duration::from_millis(1)).await;
        }
        // Nobody is accepted any more.
        while tokio::net::TcpStream::connect(inbound).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), not_ready).await.expect("others see that it ends");
    call.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = call.head().await.unwrap();
    assert_eq!((head.status(), head.headers.get("connection")), (200, None));
    release.notify_one();
    let head = request.head().await.unwrap();
    assert_eq!((head.status(), &head.headers["connection"]), (200, &"close".parse().unwrap()));
    assert_eq!(request.body(&head).await.unwrap().0, "ok");
    // The application may still make calls, on new connections too.
    let mut call = Line::to(outbound).await;
    call.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    assert_eq!(call.head().await.unwrap().status(), 200);
    assert!(!drained.is_finished(), "an application that calls is waited for");
    drop((app, call));
    let drained =
        timeout(Duration::from_secs(10), drained).await.expect("it ends with the application");
    assert!(drained.unwrap(), "nothing was cut off");
}

#[tokio::test]
async fn a_sidecar_that_ends_alone_does_not_wait_for_its_limit() {
    let app = lines(|line| line.stays()).await;
    let proxy = between(app.address, &[app.address], "").await;
    // A client that holds an idle connection holds nobody up.
    let mut idle = Line::to(proxy.outbound()).await;
    idle.say("GET / HTTP/1.1\r\nhost: nobody\r\n\r\n").await;
    assert_eq!(idle.head().await.unwrap().status(), 404);
    let drained = timeout(Duration::from_secs(10), proxy.drain()).await;
    assert!(drained.expect("the limit is 25 s"), "nothing was cut off");
}

#[tokio::test]
async fn clients_that_say_nothing_or_half_of_it_hold_up_nobody() {
    let app = lines(|line| line.stays()).await;
    let address = app.address;
    let proxy = proxy(&format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"{address}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         limits: {{header-timeout: 100ms, idle-timeout: 1h}}\n"
    ))
    .await;
    let mut held = Vec::new();
    for said in ["", "P", "GET / HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut line = Line::to(proxy.inbound()).await;
        line.say(said).await;
        held.push(line);
    }
    let accepted = async {
        let text = "onus_proxy_connections{listener=\"inbound\"} 4";
        while !get(proxy.admin(), "/metrics").await.2.contains(text) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), accepted).await.expect("all of them are accepted");
    let drained = timeout(Duration::from_secs(10), proxy.drain()).await;
    assert!(drained.expect("the limit is 25 s"), "nothing was cut off");
}
