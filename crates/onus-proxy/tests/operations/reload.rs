//! Another configuration while requests are under way.

use std::time::Duration;

use onus_proxy::{ConfigFile, ProxyConfig, ProxyConfigError};
use tokio::time::timeout;

use super::admin::get;
use crate::cast::{Line, Stub, lines, proxy};

async fn stub(status: u16) -> Stub {
    lines(move |mut line| async move {
        while line.request().await.is_some() {
            line.say(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
        }
    })
    .await
}

fn yaml(app: &Stub, callees: &str) -> String {
    format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         callees: {{{callees}}}\n",
        app.address
    )
}

fn config(yaml: &str) -> Result<ProxyConfig, ProxyConfigError> {
    ProxyConfig::new(ConfigFile::parse(yaml)?)
}

async fn call(line: &mut Line, callee: &str) -> u16 {
    line.say(format!("GET / HTTP/1.1\r\nhost: {callee}\r\n\r\n")).await;
    let head = line.head().await.expect("as the test sets it up");
    line.body(&head).await.expect("as the test sets it up");
    head.status()
}

#[tokio::test]
async fn callees_and_policies_follow_and_connections_last() {
    // S92
    let (sick, well) = (stub(503).await, stub(200).await);
    let peer = |more: &str| format!("peer: {{address: \"{}\"{more}}}", sick.address);
    let twice = ", retry: {attempts: 2, budget: {percent: 0}, no-gate: true, no-probes: true, backoff-base: 1ms, backoff-max: 1ms}";
    let proxy = proxy(&yaml(&well, &peer(""))).await;
    let mut line = Line::to(proxy.outbound()).await;
    assert_eq!((call(&mut line, "peer").await, sick.seen().len()), (503, 1));
    assert_eq!(call(&mut line, "other").await, 404);
    let other = format!("{}, other: {{address: \"{}\"}}", peer(twice), well.address);
    proxy.reload(&config(&yaml(&well, &other)).unwrap()).unwrap();
    assert_eq!((call(&mut line, "peer").await, sick.seen().len()), (503, 3));
    assert_eq!(call(&mut line, "other").await, 200);
    for _ in 0..10 {
        proxy.reload(&config(&yaml(&well, &other)).unwrap()).unwrap();
    }
    assert_eq!((call(&mut line, "peer").await, sick.seen().len()), (503, 4), "no token is left");
    assert_eq!((sick.connections(), well.connections()), (1, 1), "connections were used again");
    proxy.reload(&config(&yaml(&well, &peer(""))).unwrap()).unwrap();
    assert_eq!(call(&mut line, "other").await, 404);
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    assert!(metrics.contains("onus_proxy_reloads_total{result=\"taken\"} 12"), "{metrics}");
    assert!(metrics.contains("onus_proxy_config_refused 0.0"));
}

#[tokio::test]
async fn bounds_of_connections_follow_to_the_application_as_to_callees() {
    let app = lines(|line| line.stays()).await;
    let before = yaml(&app, "");
    let proxy = proxy(&before).await;
    let one =
        before.replace("callees:", "limits: {callee-connections: 1, callee-pending: 0}\ncallees:");
    proxy.reload(&config(&one).unwrap()).unwrap();
    let mut held = Line::to(proxy.inbound()).await;
    held.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    while app.connections() == 0 {
        tokio::task::yield_now().await;
    }
    let second = timeout(Duration::from_secs(10), async {
        let mut line = Line::to(proxy.inbound()).await;
        call(&mut line, "a").await
    });
    assert_eq!(second.await.expect("it does not wait"), 503);
}

#[tokio::test]
async fn what_needs_a_restart_is_named_and_nothing_changes() {
    let (sick, well) = (stub(503).await, stub(200).await);
    let before = yaml(&well, &format!("peer: {{address: \"{}\"}}", sick.address));
    let proxy = proxy(&before).await;
    for (from, to, says) in [
        ("service: checkout", "service: other", "another service name needs a restart"),
        (
            "admin: {listen: \"127.0.0.1:0\"}",
            "admin: {listen: \"127.0.0.1:1\"}",
            "another admin.listen needs a restart",
        ),
        ("callees:", "workers: 2\ncallees:", "another workers needs a restart"),
        ("callees:", "limits: {headers: 50}\ncallees:", "another limits needs a restart"),
        (
            "callees:",
            "analysis: {url: \"http://127.0.0.1:9\"}\ncallees:",
            "another analysis needs a restart",
        ),
    ] {
        let error = proxy.reload(&config(&before.replace(from, to)).unwrap()).unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let text = format!("{error}: {}", source.unwrap_or_default());
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(call(&mut Line::to(proxy.outbound()).await, "peer").await, 503);
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    assert!(metrics.contains("onus_proxy_reloads_total{result=\"refused\"} 5"), "{metrics}");
    assert!(metrics.contains("onus_proxy_config_refused 1.0"));
}
