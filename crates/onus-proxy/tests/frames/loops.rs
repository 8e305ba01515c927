//! Proxies that are told to send requests to themselves.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use onus_proxy::{ConfigFile, ProxyConfig};

use crate::cast::{Line, TWICE, lines, proxy};
use crate::operations::admin::{get, other_address};

fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it is bound")
}

#[tokio::test]
async fn a_request_that_would_come_back_is_refused_and_not_retried() {
    // S72
    // What is known at the start is refused there; any free port is not.
    let yaml = |callees: &str| {
        format!(
            "service: round\ninbound: {{listen: \"127.0.0.1:0\", app: \"127.0.0.1:9\"}}\n\
             outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
             callees: {{{callees}}}\n"
        )
    };
    let proxy = proxy(&yaml("")).await;
    let outbound = proxy.outbound();
    let port = outbound.port();
    let round = yaml(&format!(
        "by-address: {{address: \"{outbound}\", {TWICE}}}, \
         by-name: {{address: \"localhost:{port}\", {TWICE}}}"
    ));
    let round = ConfigFile::parse(&round).and_then(ProxyConfig::new).expect("it is sound");
    proxy.reload(&round).expect("it can be taken over");
    for host in ["by-address", "by-name"] {
        let mut line = Line::to(outbound).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n")).await;
        let head = line.head().await.unwrap();
        assert_eq!(head.status(), 508, "{host}");
        let status = head.headers["proxy-status"].to_str().unwrap();
        assert!(status.starts_with("onus; error=proxy_loop_detected; "), "{status}");
    }
    drop(proxy);
}

#[tokio::test]
async fn an_application_at_the_address_of_the_machine_is_not_the_proxy_itself() {
    // S72
    let Some(own) = other_address() else {
        println!("skipped: a loop by the machine's own address needs a network");
        return;
    };
    // Any address of this machine leads to the inbound side, and this one is not known for its own.
    let inbound = SocketAddr::from((Ipv4Addr::UNSPECIFIED, free().port()));
    let proxy = proxy(&format!(
        "service: round\ninbound: {{listen: \"{inbound}\", app: \"{own}:{}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n",
        inbound.port()
    ))
    .await;
    let mut line = Line::to(SocketAddr::from((Ipv4Addr::LOCALHOST, inbound.port()))).await;
    line.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 508);
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    let one = "onus_proxy_connections{listener=\"inbound\"} 1";
    assert!(metrics.contains(one), "the request came once: {metrics}");
}

#[tokio::test]
async fn a_service_may_call_itself() {
    // S72
    let app = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let inbound = free();
    let proxy = proxy(&format!(
        "service: self\ninbound: {{listen: \"{inbound}\", app: \"{}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         callees: {{self: {{address: \"{inbound}\"}}}}\n",
        app.address
    ))
    .await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: self\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    assert_eq!(app.seen().len(), 1);
}
