//! Connections that stop being HTTP.

use crate::cast::{Line, Stub, TWICE, between, lines, proxy};

/// A peer that answers so, and then says back what it reads.
async fn echo(answer: &'static str) -> Stub {
    lines(move |mut line| async move {
        while line.request().await.is_some() {
            line.say(answer).await;
            if !answer.contains(" 101 ") && !answer.contains(" 200 Connected") {
                continue;
            }
            while let Some(byte) = line.bytes(1).await {
                line.say(byte).await;
            }
        }
    })
    .await
}

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
                      upgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n";
const ASK: &str = "GET /chat HTTP/1.1\r\nhost: peer\r\nconnection: keep-alive, Upgrade\r\n\
                   upgrade: websocket\r\nsec-websocket-key: y\r\n\r\n";

#[tokio::test]
async fn behind_an_upgrade_bytes_pass_both_ways() {
    // S58
    let stub = echo(SWITCH).await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let mut line = Line::to(address).await;
        line.say(ASK).await;
        let head = line.head().await.unwrap();
        assert_eq!((head.status(), &head.headers["upgrade"]), (101, &"websocket".parse().unwrap()));
        assert_eq!(head.headers["sec-websocket-accept"], "x");
        for word in ["hello", "again"] {
            line.say(word).await;
            assert_eq!(line.bytes(word.len()).await.unwrap(), word);
        }
        line.half_close().await;
        assert_eq!(line.drain().await, "", "the end passes too");
    }
    let asked = stub.seen();
    assert_eq!(asked.len(), 2, "a tunnel is not retried");
    assert!(asked.iter().all(|seen| seen.headers["upgrade"] == "websocket"));
}

#[tokio::test]
async fn no_tunnel_leads_to_http_nor_is_opened_unasked() {
    let stub = echo(SWITCH).await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let asks = |connection: &str, upgrade: &str| {
        format!(
            "GET / HTTP/1.1\r\nhost: peer\r\nconnection: {connection}\r\nupgrade: {upgrade}\r\n\
             http2-settings: AAMAAABk\r\n\r\n"
        )
    };
    for request in [
        asks("Upgrade, HTTP2-Settings", "h2c"),
        asks("Upgrade", "websocket, h2c"),
        asks("keep-alive", "websocket"),
        asks("Upgrade", "websocket").replace("HTTP/1.1", "HTTP/1.0"),
    ] {
        for address in [proxy.inbound(), proxy.outbound()] {
            let mut line = Line::to(address).await;
            line.say(&request).await;
            // The peer switches protocols all the same.
            assert_eq!(line.head().await.unwrap().status(), 502, "{request}");
            let seen = stub.seen();
            let headers = &seen.last().unwrap().headers;
            for name in ["upgrade", "connection", "http2-settings"] {
                let passes = name == "http2-settings" && !request.contains("HTTP2");
                assert_eq!(headers.contains_key(name), passes, "{name} of {request}");
            }
        }
    }
}

/// The timers of the established connections whose end of that kind is at this address, as Linux tells
/// of them: kind and hundredths of a second.
#[cfg(target_os = "linux")]
fn timers(address: std::net::SocketAddr, is_of_peer: bool) -> Vec<(u8, u64)> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table");
    let port = format!(":{:04X}", address.port());
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    let timer = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let (kind, when) = words[5].split_once(':').expect("a timer");
        (words[3] == "01" && words[1 + usize::from(is_of_peer)].ends_with(&port))
            .then(|| (hex(kind) as u8, hex(when)))
    };
    table.lines().skip(1).filter_map(timer).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn both_ends_of_a_tunnel_are_asked_whether_they_are_there() {
    let stub = echo(SWITCH).await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.inbound()).await;
    line.say(ASK).await;
    assert_eq!(line.head().await.unwrap().status(), 101);
    for (address, is_of_peer) in [(proxy.inbound(), false), (stub.address, true)] {
        let is_asked = async {
            // What is not acknowledged yet has a timer of its own, and the table may change while it
            // is read.
            while !matches!(timers(address, is_of_peer)[..], [(2, ..=60_00)]) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), is_asked).await.expect("a timer");
    }
}

#[tokio::test]
async fn tunnels_are_connections_of_clients() {
    let stub = echo(SWITCH).await;
    let address = stub.address;
    let proxy = proxy(&format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"{address}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         limits: {{connections: 4}}\n"
    ))
    .await;
    let open = async || {
        let mut line = Line::to(proxy.inbound()).await;
        line.say(ASK).await;
        line.head().await.is_some().then_some(line)
    };
    let mut tunnels = Vec::new();
    for _ in 0..10 {
        tunnels.extend(open().await);
    }
    // One that opens is two for a moment.
    assert!((2..=4).contains(&tunnels.len()), "{} are open", tunnels.len());
    tunnels.clear();
    while open().await.is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_upgrade_that_is_refused_is_an_answer_and_may_be_retried() {
    let refused = "HTTP/1.1 503 X\r\ncontent-length: 2\r\n\r\nno";
    let stub = echo(refused).await;
    let proxy = between(stub.address, &[stub.address], &format!(", {TWICE}")).await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say(ASK).await;
    let head = line.head().await.unwrap();
    assert_eq!((head.status(), &line.body(&head).await.unwrap().0[..]), (503, &b"no"[..]));
    assert_eq!(stub.seen().len(), 2);
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 503, "the connection goes on");
}

#[tokio::test]
async fn behind_a_connect_bytes_pass_both_ways() {
    let stub = echo("HTTP/1.1 200 Connected\r\n\r\n").await;
    let proxy = between(stub.address, &[stub.address], "").await;
    let mut line = Line::to(proxy.outbound()).await;
    line.say("CONNECT peer:443 HTTP/1.1\r\nhost: peer:443\r\n\r\n").await;
    assert_eq!(line.head().await.unwrap().status(), 200);
    line.say("hello").await;
    assert_eq!(line.bytes(5).await.unwrap(), "hello");
    assert_eq!(stub.seen()[0].uri, "peer:443");
}

/// Asks for a WebSocket over HTTP/2, and whether that is offered at all.
async fn extended(address: std::net::SocketAddr) -> (http::StatusCode, hyper::upgrade::Upgraded) {
    let stream = tokio::net::TcpStream::connect(address).await.expect("somebody listens");
    let handshake = hyper::client::conn::http2::handshake(
        hyper_util::rt::TokioExecutor::new(),
        hyper_util::rt::TokioIo::new(stream),
    );
    let (mut sender, connection) = handshake.await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let mut request = http::Request::connect("http://peer/chat?room=1")
        .header("sec-websocket-version", "13")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .expect("a request");
    request.extensions_mut().insert(hyper::ext::Protocol::from_static("websocket"));
    let answer = sender.send_request(request).await.expect("an answer");
    let status = answer.status();
    (status, hyper::upgrade::on(answer).await.expect("a tunnel"))
}

/// Says a word into a tunnel, and hears it again.
async fn hears_itself(tunnel: hyper::upgrade::Upgraded) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut tunnel = hyper_util::rt::TokioIo::new(tunnel);
    for word in ["hello", "again"] {
        tunnel.write_all(word.as_bytes()).await.unwrap();
        tunnel.flush().await.unwrap();
        let mut heard = [0; 5];
        tunnel.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, word.as_bytes());
    }
}

#[tokio::test]
async fn a_websocket_over_http2_reaches_a_callee_of_the_same_version() {
    let stub = Stub::listen(|stream, _, _| async move {
        let mut settings = h2::server::Builder::new();
        settings.enable_connect_protocol();
        let Ok(mut connection) = settings.handshake::<_, bytes::Bytes>(stream).await else {
            return;
        };
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            let protocol = request.extensions().get::<h2::ext::Protocol>().unwrap().as_str();
            let asked = format!("{} {} {protocol}", request.method(), request.uri());
            assert_eq!(asked, "CONNECT http://peer/chat?room=1 websocket");
            tokio::spawn(async move {
                let mut sends = respond.send_response(http::Response::new(()), false).unwrap();
                let mut body = request.into_body();
                while let Some(Ok(data)) = body.data().await {
                    body.flow_control().release_capacity(data.len()).unwrap();
                    sends.send_data(data, false).unwrap();
                }
            });
        }
    })
    .await;
    let proxy = between(stub.address, &[stub.address], "").await;
    for address in [proxy.inbound(), proxy.outbound()] {
        let (status, tunnel) = extended(address).await;
        assert_eq!(status, 200);
        hears_itself(tunnel).await;
    }
}

#[tokio::test]
async fn a_websocket_over_http2_is_an_upgrade_for_a_callee_of_the_old_version() {
    let stub = echo(SWITCH).await;
    let proxy = between(stub.address, &[stub.address], ", protocol: http1").await;
    let (status, tunnel) = extended(proxy.outbound()).await;
    assert_eq!(status, 200);
    hears_itself(tunnel).await;
    let asked = &stub.seen()[0];
    assert_eq!((asked.method.as_str(), asked.uri.to_string().as_str()), ("GET", "/chat?room=1"));
    for (name, value) in [("upgrade", "websocket"), ("connection", "upgrade"), ("host", "peer")] {
        assert_eq!(asked.headers[name], value, "{name}");
    }
    // Sixteen bytes.
    let key = asked.headers["sec-websocket-key"].to_str().unwrap();
    assert!(key.len() == 24 && key.ends_with("=="), "{key}");
}
