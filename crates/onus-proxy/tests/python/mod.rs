//! A chain of four services in Python, each behind a sidecar of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use onus_proxy::Proxy;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

use crate::cast::{chained, proxy};

/// A service in Python.
struct App {
    address: SocketAddr,
    lines: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl App {
    /// Starts it; `None` where there is no Python.
    async fn start(callee: Option<&str>, port: u16, outbound: SocketAddr) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/app.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args(callee)
            .env("PORT", port.to_string())
            .env("OUTBOUND", outbound.to_string())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(child.stdout.take()?).lines();
        let port = lines.next_line().await.ok()??.parse().ok()?;
        Some(Self { address: (Ipv4Addr::LOCALHOST, port).into(), lines, child })
    }

    /// Ends it; how many requests it has handled.
    async fn end(mut self) -> usize {
        self.child.kill().await.expect("as the test sets it up");
        let mut handled = 0;
        while let Some(line) = self.lines.next_line().await.expect("as the test sets it up") {
            handled += 1;
            assert!(line.contains("onus="), "each request has a token: {line}");
        }
        handled
    }
}

/// Services A to D, each with its sidecar; D fails.
struct Chain {
    apps: Vec<App>,
    proxies: Vec<Proxy>,
}

impl Chain {
    async fn start() -> Option<Self> {
        let names = ["A", "B", "C", "D"];
        let (mut apps, mut proxies) = (Vec::new(), Vec::<Proxy>::new());
        for at in (0..names.len()).rev() {
            let callee = names.get(at + 1).copied();
            // The application has to know its sidecar, and the sidecar its application.
            let port = free_port();
            let address = (Ipv4Addr::LOCALHOST, port).into();
            let next = proxies.last().map(Proxy::inbound);
            let sidecar = proxy(&chained(names[at], address, callee.zip(next))).await;
            let app = App::start(callee, port, sidecar.outbound()).await?;
            assert_eq!(app.address, address);
            apps.push(app);
            proxies.push(sidecar);
        }
        apps.reverse();
        proxies.reverse();
        Some(Self { apps, proxies })
    }
}

fn free_port() -> u16 {
    let listener =
        std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("as the test sets it up");
    listener.local_addr().expect("as the test sets it up").port()
}

#[tokio::test]
async fn one_retry_is_made_in_the_whole_chain() {
    let Some(chain) = Chain::start().await else {
        println!("skipped: one_retry_is_made_in_the_whole_chain needs Python");
        return;
    };
    let stream = TcpStream::connect(chain.proxies[0].inbound()).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..10 {
        let request = Request::get("/")
            .header("host", "a")
            .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let response =
            sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 502);
        let claim = response.headers()["onus-claim"].to_str().unwrap().to_owned();
        assert_eq!(claim, "unclaimed;reason=suppressed;attempt=1;origin=\"D\";hops=3");
        response.into_body().collect().await.unwrap();
    }
    let mut handled = Vec::new();
    for app in chain.apps {
        handled.push(app.end().await);
    }
    assert_eq!(handled, [10, 10, 10, 20]);
}
