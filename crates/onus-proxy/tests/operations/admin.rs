//! The admin interface.

use std::net::SocketAddr;

use crate::cast::{Line, TWICE, between, lines};

/// The status, the content type and the body of an answer.
pub(super) async fn ask(address: SocketAddr, request: &str) -> (u16, String, String) {
    let mut line = Line::to(address).await;
    line.say(request).await;
    let head = line.head().await.expect("as the test sets it up");
    let (body, _) = line.body(&head).await.expect("as the test sets it up");
    let kind = head.headers["content-type"].to_str().expect("as the test sets it up").to_owned();
    (head.status(), kind, String::from_utf8_lossy(&body).into_owned())
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: admin\r\n\r\n")).await
}

#[tokio::test]
async fn it_tells_health_edges_and_metrics() {
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let more = format!(", routes: [\"/rate/{{id}}\"], {TWICE}");
    let proxy = between(stub.address, &[stub.address], &more).await;
    let admin = proxy.admin();
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET /rate/17 HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 503);
    assert_eq!(get(admin, "/livez").await.0, 200);
    assert_eq!(get(admin, "/readyz").await.0, 200);
    let (status, kind, version) = get(admin, "/version").await;
    assert_eq!((status, &*kind), (200, "application/json"));
    assert_eq!(version, concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}"));

    let (_, _, edges) = get(admin, "/api/v1/edges").await;
    let start = "{\"service\":\"checkout\",\"edges\":[{\"caller_method\":\"\",\"callee\":\"peer\",\
                 \"callee_method\":\"GET /rate/{id}\",\"class\":\"unknown\"";
    assert!(edges.starts_with(start), "{edges}");
    let counts =
        "\"ok\":0,\"failed\":1,\"abandoned\":0,\"retries\":1,\"suppressed\":0,\"untied\":1}";
    assert!(edges.contains(counts), "{edges}");

    let (_, kind, metrics) = get(admin, "/metrics").await;
    assert!(kind.starts_with("application/openmetrics-text"));
    for series in [
        "onus_proxy_connections{listener=\"outbound\"} 1.0",
        "onus_proxy_instances{callee=\"peer\",state=\"reached\"} 1.0",
        "onus_proxy_callee_connections{callee=\"peer\",protocol=\"http1\",state=\"idle\"} 1.0",
        "onus_proxy_ready 1.0",
        "onus_mode{service=\"checkout\",mode=\"enforce\"} 1.0",
        "onus_retries_total{caller=\"checkout\",caller_method=\"\",callee=\"peer\",\
         callee_method=\"GET /rate/{id}\",verdict=\"made\",cause=\"missing\",arm=\"enforce\"} 1",
    ] {
        assert!(metrics.contains(series), "{series} is not in\n{metrics}");
    }
}

#[tokio::test]
async fn what_it_does_not_know_is_a_problem() {
    let stub = lines(|line| line.stays()).await;
    let proxy = between(stub.address, &[stub.address], "").await;
    for (request, status, says) in [
        ("GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n", 404, "there are /metrics"),
        ("POST /livez HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n", 405, "allowed is GET"),
        ("GET /api/v1/switches HTTP/1.1\r\nhost: a\r\n\r\n", 405, "allowed is POST"),
        (
            "POST /api/v1/switches HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nmode: off",
            415,
            "application/yaml",
        ),
        (
            "POST /api/v1/switches HTTP/1.1\r\nhost: a\r\ncontent-type: application/yaml\r\n\
             content-length: 10\r\n\r\nmode: loud",
            400,
            "allowed is off, observe",
        ),
    ] {
        let (got, kind, text) = ask(proxy.admin(), request).await;
        assert_eq!((got, &*kind), (status, "application/problem+json"), "{request} {text}");
        assert!(text.contains(says), "{request} {text}");
    }
    assert_eq!(proxy.onus().mode(), onus::Mode::ENFORCE);
    let off = "POST /api/v1/switches HTTP/1.1\r\nhost: a\r\ncontent-type: application/yaml\r\n\
               content-length: 9\r\n\r\nmode: off";
    assert_eq!(ask(proxy.admin(), off).await.0, 200);
    assert_eq!(proxy.onus().mode(), onus::Mode::Off);
}

#[tokio::test]
async fn it_answers_operators_as_every_process_with_onus() {
    let proxy = between(([127, 0, 0, 1], 1).into(), &[([127, 0, 0, 1], 1).into()], "").await;
    let admin = proxy.admin();
    let (status, kind, now) = get(admin, "/api/v1/now").await;
    assert_eq!((status, &*kind), (200, "application/json"));
    assert!(now.contains("\"service\":\"checkout\""), "{now}");
    assert_eq!(get(admin, "/openapi.json").await.0, 200);
    let post = |kind: &str, body: &str| {
        format!(
            "POST /api/v1/switch HTTP/1.1\r\nhost: admin\r\ncontent-type: {kind}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let off = r#"{"service":"checkout","mode":"off","mode_seconds":60,"who":"alice","why":"db"}"#;
    let shield = r#"{"shield_seconds":60,"who":"bob","why":"db"}"#;
    let other = r#"{"service":"cart","mode":"off","who":"alice","why":"db"}"#;
    for (kind, body, status) in [
        ("text/plain", off, 415),
        ("application/json", other, 409),
        ("application/json", off, 200),
        ("application/json", shield, 200),
        ("application/json", "{", 400),
    ] {
        assert_eq!(ask(admin, &post(kind, body)).await.0, status, "{body}");
    }
    let (_, _, orders) = get(admin, "/api/v1/orders").await;
    assert!(orders.contains("\"mode\":\"off\"") && orders.contains("\"who\":\"bob\""), "{orders}");
    let (_, _, metrics) = get(admin, "/metrics").await;
    assert!(metrics.contains("onus_mode{service=\"checkout\",mode=\"off\"} 1.0"), "{metrics}");
}

/// An address of this machine that is none of its own loopback; none where it has no network.
pub(crate) fn other_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[tokio::test]
async fn switches_from_other_machines_take_the_token() {
    let Some(other) = other_address() else {
        println!("skipped: switches_from_other_machines_take_the_token needs a network");
        return;
    };
    let token = std::env::temp_dir().join(format!("onus-token-{}", std::process::id()));
    std::fs::write(&token, "secret\n").unwrap();
    let proxy = crate::cast::proxy(&format!(
        "service: a\nmode: enforce\ninbound: {{listen: \"127.0.0.1:0\", app: \"127.0.0.1:1\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\n\
         admin: {{listen: \"0.0.0.0:0\", token-file: {token:?}}}\n"
    ))
    .await;
    let switch = |authorization: &str| {
        format!(
            "POST /api/v1/switches HTTP/1.1\r\nhost: a\r\ncontent-type: application/yaml\r\n\
             {authorization}content-length: 9\r\n\r\nmode: off"
        )
    };
    let here = SocketAddr::from(([127, 0, 0, 1], proxy.admin().port()));
    let there = SocketAddr::new(other, proxy.admin().port());
    for (address, authorization, status) in [
        (there, "", 403),
        (there, "authorization: Bearer wrong\r\n", 403),
        (there, "authorization: Bearer \r\n", 403),
        (there, "authorization: secret\r\n", 403),
        (there, "authorization: Bearer secret\r\n", 200),
        (here, "", 200),
    ] {
        let (got, _, says) = ask(address, &switch(authorization)).await;
        assert_eq!(got, status, "{address} {authorization:?} {says}");
    }
    assert_eq!(get(there, "/livez").await.0, 200);
    std::fs::remove_file(&token).unwrap();
    let bearer = switch("authorization: Bearer secret\r\n");
    assert_eq!(ask(there, &bearer).await.0, 403, "without a token none is enough");
}

#[tokio::test]
async fn who_asks_for_much_and_reads_nothing_gets_little() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let proxy = between(nobody, &[nobody], "").await;
    let mut connection = Line::to(proxy.admin()).await;
    connection.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    connection.say([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
    // Its settings: how many requests it takes at a time is the third of them.
    let head = connection.bytes(9).await.unwrap();
    let settings = connection.bytes(usize::from(head[2])).await.unwrap();
    let streams = settings.chunks(6).find(|setting| setting[..2] == [0, 3]).unwrap();
    assert_eq!(streams[2..], [0, 0, 0, 8]);
    // One more than it takes is closed at once.
    let mut held = Vec::new();
    while held.len() < 1000 {
        let mut line = Line::to(proxy.admin()).await;
        line.say("GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await;
        if line.head().await.is_none() {
            break;
        }
        held.push(line);
    }
    assert_eq!(held.len(), 255);
}
