//! What a request is told of the way that it came.

use crate::cast::{Line, Stub, lines, proxy};

async fn ok() -> Stub {
    lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\nvia: 1.1 callee\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await
}

/// A proxy with these settings of forwarding.
async fn forwards(peer: std::net::SocketAddr, inbound: &str, outbound: &str) -> onus_proxy::Proxy {
    proxy(&format!(
        "service: shop/checkout\nmode: enforce\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{peer}\", forwarding: {{{inbound}}}}}\n\
         outbound: {{listen: \"127.0.0.1:0\", forwarding: {{{outbound}}}}}\n\
         admin: {{listen: \"127.0.0.1:0\"}}\n\
         callees: {{peer: {{address: \"{peer}\"}}}}\n"
    ))
    .await
}

async fn sent(line: &mut Line, more: &str) -> u16 {
    line.say(format!("GET / HTTP/1.1\r\nhost: peer\r\n{more}\r\n")).await;
    line.head().await.expect("an answer").status()
}

#[tokio::test]
async fn nothing_is_written_unless_it_is_asked_for() {
    let stub = ok().await;
    let proxy = forwards(stub.address, "", "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        let status = sent(&mut line, "via: 1.1 a\r\nx-forwarded-for: 1.2.3.4\r\n").await;
        assert_eq!(status, 200);
    }
    for seen in stub.seen() {
        assert_eq!(
            (&seen.headers["via"], &seen.headers["x-forwarded-for"]),
            (&"1.1 a".parse().unwrap(), &"1.2.3.4".parse().unwrap())
        );
        assert!(!seen.headers.contains_key("forwarded"));
    }
}

#[tokio::test]
async fn each_side_says_what_it_is_asked_to() {
    let stub = ok().await;
    let both = "forwarded: true, x-forwarded: true";
    let trusting = format!("{both}, trusted: [127.0.0.0/8]");
    let proxy = forwards(stub.address, both, &trusting).await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        assert_eq!(sent(&mut line, "x-forwarded-for: 1.2.3.4\r\n").await, 200);
    }
    let seen = stub.seen();
    let [inbound, outbound] = &seen[..] else { panic!("{seen:?}") };
    for (seen, name, value) in [
        (inbound, "forwarded", "for=127.0.0.1;host=peer;proto=http"),
        (inbound, "x-forwarded-for", "127.0.0.1"),
        (inbound, "x-forwarded-proto", "http"),
        (inbound, "x-forwarded-host", "peer"),
        (outbound, "x-forwarded-for", "1.2.3.4, 127.0.0.1"),
    ] {
        assert_eq!(seen.headers[name], value, "{name}");
    }
    assert!(!inbound.headers.contains_key("via"));
}

#[tokio::test]
async fn a_request_that_comes_back_is_refused_with_its_reason() {
    let stub = ok().await;
    let proxy = forwards(stub.address, "via: true", "via: true").await;
    let sides = [(proxy.inbound(), "-in"), (proxy.outbound(), "-out")];
    let mut names = Vec::new();
    for (number, (address, side)) in sides.into_iter().enumerate() {
        let mut line = Line::to(address).await;
        assert_eq!(sent(&mut line, "via: 1.0 gateway\r\n").await, 200);
        let via = stub.seen()[number].headers["via"].to_str().unwrap().to_owned();
        assert!(via.starts_with("1.0 gateway, 1.1 onus-shop-checkout-"), "{via}");
        assert!(via.ends_with(side), "{via}");
        names.push(via);
    }
    // An application that hands on all that it gets makes no loop: its calls leave by the other side.
    let mut line = Line::to(proxy.outbound()).await;
    assert_eq!(sent(&mut line, &format!("via: {}\r\n", names[0])).await, 200);
    for ((address, _), via) in sides.iter().zip(&names) {
        let mut line = Line::to(*address).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: peer\r\nvia: {via}, 1.1 other\r\n\r\n")).await;
        let head = line.head().await.unwrap();
        assert_eq!(head.status(), 508);
        let says = head.headers["proxy-status"].to_str().unwrap();
        assert!(says.starts_with("onus; error=proxy_loop_detected"), "{says}");
        // Inbound it is an error of this service.
        let claim = head.headers.get("onus-claim").map(|claim| claim.to_str().unwrap());
        assert_eq!(claim.is_some(), via.ends_with("-in"), "{claim:?}");
    }
    assert_eq!(stub.seen().len(), 3);
    // Over gRPC it is a status.
    let mut line = Line::to(proxy.outbound()).await;
    line.say(format!(
        "POST /a.B/C HTTP/1.1\r\nhost: peer\r\nvia: {}\r\ncontent-type: application/grpc\r\n\
         content-length: 0\r\n\r\n",
        names[1]
    ))
    .await;
    assert_eq!(line.head().await.unwrap().headers["grpc-status"], "13");
}
