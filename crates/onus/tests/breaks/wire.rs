//! What goes over real sockets, byte by byte: a service that observes, or is switched off, sends
//! and receives what it would without the layers, and connections can be taken over through them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use onus::{Mode, Onus, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, ServiceExt, service_fn};

use crate::cast::{Piece, Pieces, read};

/// Without the layers, or with them in this mode.
const WAYS: [Option<Mode>; 3] = [None, Some(Mode::Off), Some(Mode::Observe)];

fn onus(mode: Mode) -> Onus {
    let once = RetryPolicy::attempts(1).deadline(std::time::Duration::from_secs(60));
    Onus::builder("checkout").mode(mode).retry("peer", once).build().unwrap()
}

/// A peer that answers one request with these bytes, and the bytes of the request.
async fn peer(answer: &'static [u8]) -> (String, tokio::task::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !ends(&request) {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        stream.write_all(answer).await.unwrap();
        request
    });
    (format!("http://{address}"), request)
}

/// Whether these bytes are a whole request, of which none here has a body but with an end in sight.
fn ends(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    match head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        Some(length) => body.len() >= length.parse().unwrap(),
        None => !head.contains("transfer-encoding: chunked") || body.ends_with("0\r\n\r\n"),
    }
}

/// What a client sends and gets.
async fn call(way: Option<Mode>, request: Request<Pieces>, answer: &'static [u8]) -> [String; 2] {
    let (url, bytes) = peer(answer).await;
    let (mut head, body) = request.into_parts();
    head.uri = format!("{url}{}", head.uri).parse().unwrap();
    let address = url.trim_start_matches("http://").to_owned();
    let request = Request::from_parts(head, body);
    let (head, body) = match way {
        None => {
            let client = Client::builder(TokioExecutor::new()).build_http();
            let (head, body) = client.request(request).await.unwrap().into_parts();
            (head, read(body).await)
        }
        Some(mode) => {
            let client = Client::builder(TokioExecutor::new()).build_http();
            let client = onus(mode).outbound("peer").hyper(client);
            let (head, body) = client.oneshot(request).await.unwrap().into_parts();
            (head, read(body).await)
        }
    };
    let got = format!("{} {:?} {:?} {body:?}", head.status, head.version, head.headers);
    let sent = String::from_utf8(bytes.await.unwrap()).unwrap();
    [sent.replace(&address, "peer"), got]
}

#[tokio::test]
async fn observing_changes_no_byte_of_a_call() {
    // [mode-2] [mode-5]
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Own: 1\r\nx-own: 2\r\n\r\nfine";
    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n";
    const FAILS: &[u8] =
        b"HTTP/1.0 503 Busy\r\nretry-after: 1\r\nx-envoy-ratelimited: true\r\n\r\n";
    let with = |method: Method, body: Pieces| {
        let request = Request::builder().method(method).uri("/pay?id=17");
        let request = request.header("x-own", "1").header("X-Envoy-Expected-Rq-Timeout-Ms", "900");
        request.header("grpc-timeout", "1S").header("onus-attempt", "7").body(body).unwrap()
    };
    let requests: [fn() -> (Method, Pieces); 6] = [
        || (Method::GET, Pieces::empty()),
        || (Method::POST, Pieces::sized("17 EUR")),
        || (Method::POST, Pieces::of_size([])),
        || (Method::PUT, Pieces::new([Piece::data("17"), Piece::data(" EUR")])),
        || (Method::DELETE, Pieces::of_size([Piece::data("17"), Piece::data(" EUR")])),
        || (Method::OPTIONS, Pieces::new([])),
    ];
    for request in requests {
        for answer in [OK, CHUNKED, FAILS] {
            let mut seen = Vec::new();
            for way in WAYS {
                let (method, body) = request();
                let mut request = with(method, body);
                // Observing takes out what the application copied; that is an `onus-*` header.
                if way == Some(Mode::Observe) || way.is_none() {
                    request.headers_mut().remove("onus-attempt");
                }
                seen.push(call(way, request, answer).await);
            }
            let off = seen[1].clone().map(|text| text.replace("onus-attempt: 7\r\n", ""));
            assert_eq!(off, seen[0]);
            assert_eq!(seen[2], seen[0]);
        }
    }
}

/// What a service answers to these bytes, until it closes.
async fn answer(way: Option<Mode>, status: u16, body: fn() -> Pieces, request: &str) -> String {
    let handler = service_fn(move |_: Request<Incoming>| async move {
        let response = Response::builder().status(status).header("X-Own", "1");
        Ok::<_, Infallible>(response.header("grpc-retry-pushback-ms", "5").body(body()).unwrap())
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let stream = TokioIo::new(listener.accept().await.unwrap().0);
        let mut server = http1::Builder::new();
        server.auto_date_header(false);
        let _ = match way {
            None => server.serve_connection(stream, TowerToHyperService::new(handler)).await,
            Some(mode) => {
                let service = onus(mode).inbound().layer(handler);
                server.serve_connection(stream, TowerToHyperService::new(service)).await
            }
        };
    });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = String::new();
    stream.read_to_string(&mut bytes).await.unwrap();
    bytes
}

#[tokio::test]
async fn observing_adds_a_claim_to_errors_and_nothing_else() {
    // [mode-2] [mode-4] [wire-12]
    let bodies: [fn() -> Pieces; 3] = [
        Pieces::empty,
        || Pieces::sized("a body"),
        || Pieces::new([Piece::data("in"), Piece::data(" parts")]),
    ];
    for body in bodies {
        for method in ["GET", "HEAD", "POST"] {
            for version in ["1.1", "1.0"] {
                for status in [200, 204, 304, 404, 429, 503] {
                    let request = format!(
                        "{method} /pay HTTP/{version}\r\nhost: x\r\nconnection: close\r\n\
                         x-envoy-expected-rq-timeout-ms: 60000\r\ncontent-length: 0\r\n\r\n"
                    );
                    let mut answers = Vec::new();
                    for way in WAYS {
                        answers.push(answer(way, status, body, &request).await);
                    }
                    let context = format!("{method} {version} {status}");
                    assert_eq!(answers[1], answers[0], "{context}");
                    const CLAIM: &str =
                        "onus-claim: claimed;reason=own;attempt=1;origin=\"checkout\";hops=0\r\n";
                    let failed = status == 429 || status == 503;
                    assert_eq!(answers[2].contains(CLAIM), failed, "{context}");
                    assert_eq!(answers[2].replace(CLAIM, ""), answers[0], "{context}");
                }
            }
        }
    }
}

#[tokio::test]
async fn connections_are_taken_over_through_both_layers_after_a_retry() {
    let seen = Arc::new(AtomicUsize::new(0));
    let handler = service_fn(move |mut request: Request<Incoming>| {
        // The first of the second call's attempts fails.
        let fails = seen.fetch_add(1, Ordering::Relaxed) == 1;
        async move {
            let mut response = Response::new(Pieces::empty());
            if fails {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                return Ok::<_, Infallible>(response);
            }
            tokio::spawn(async move {
                let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
                let mut stream = TokioIo::new(upgraded);
                let mut message = [0; 4];
                stream.read_exact(&mut message).await.unwrap();
                message.reverse();
                stream.write_all(&message).await.unwrap();
            });
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let headers = response.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("echo"));
            Ok(response)
        }
    });
    let callee = Onus::builder("callee").enforce().build().unwrap();
    let service = callee.inbound().layer(handler);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let stream = TokioIo::new(listener.accept().await.unwrap().0);
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(http1::Builder::new().serve_connection(stream, service).with_upgrades());
        }
    });
    let policy = RetryPolicy::attempts(2).no_budget();
    let caller = Onus::builder("caller").enforce().retry("callee", policy).build().unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let client = caller.outbound("callee").hyper(client);
    for attempts in [1, 2] {
        let request = Request::get(format!("http://{address}/{attempts}"))
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "echo")
            .body(Pieces::empty())
            .unwrap();
        let mut response = client.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS, "{attempts}");
        let mut stream = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
        stream.write_all(b"ping").await.unwrap();
        let mut message = [0; 4];
        stream.read_exact(&mut message).await.unwrap();
        assert_eq!(&message, b"gnip", "{attempts}");
    }
}
