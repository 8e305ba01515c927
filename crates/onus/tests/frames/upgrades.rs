//! Connections that are taken over, and calls for which there is nobody.

use http::{Method, Request, Response, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use onus::Onus;
use onus::outbound::OutboundBody;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use super::line::{Line, lines};
use super::notes::Stub;
use super::relay::{Speaks::Http1, Speaks::Http2, checkout, client, relay, twice};
use super::streams::streams_with;
use crate::cast::{Pieces, counted, said};

type Answer = Response<OutboundBody<hyper::body::Incoming>>;

fn upgrade(url: &str) -> Request<Pieces> {
    let request = Request::get(url).header(header::CONNECTION, "upgrade");
    request.header(header::UPGRADE, "websocket").body(Pieces::empty()).unwrap()
}

fn connect(stub: &Stub) -> Request<Pieces> {
    let uri = Uri::builder().scheme("http").authority(stub.address.to_string());
    let uri = uri.path_and_query("/").build().unwrap();
    Request::builder().method(Method::CONNECT).uri(uri).body(Pieces::empty()).unwrap()
}

/// What the callee says through the tunnel until it ends.
async fn through(mut response: Answer) -> String {
    let tunnel = hyper::upgrade::on(&mut response).await.expect("the connection is free");
    let (mut tunnel, mut said) = (TokioIo::new(tunnel), String::new());
    tunnel.write_all(b"ping").await.unwrap();
    // How a tunnel ends is nobody's business here.
    let _ = tunnel.read_to_string(&mut said).await;
    said
}

/// Ok, error, abandoned.
fn calls(onus: &Onus) -> [u64; 3] {
    ["ok", "error", "abandoned"]
        .map(|outcome| counted(onus, "onus_calls_total", &[("outcome", outcome)]))
}

#[tokio::test]
async fn behind_the_head_of_an_upgrade_is_a_tunnel() {
    // S58
    const SWITCHED: &str =
        "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    const CONNECTED: &str = "HTTP/1.1 200 Connected\r\n\r\n";
    for resets in [false, true] {
        for connects in [false, true] {
            let stub = lines(move |mut line| async move {
                line.head().await;
                line.say(if connects { CONNECTED } else { SWITCHED }).await;
                assert_eq!(line.bytes(4).await.expect("the caller speaks"), "ping");
                line.say("pong").await;
                if resets {
                    line.reset();
                }
            })
            .await;
            let onus = checkout(twice());
            let request = if connects { connect(&stub) } else { upgrade(&stub.url("/")) };
            let response = client(&onus, Http1).oneshot(request).await.unwrap();
            let expected = if connects { 200 } else { 101 };
            assert_eq!(response.status(), expected);
            let said = through(response).await;
            assert!(said == "pong" || resets, "{said:?}");
            assert_eq!((stub.connections(), calls(&onus)), (1, [1, 0, 0]), "{resets} {connects}");
        }
    }
}

#[tokio::test]
async fn an_upgrade_that_is_refused_is_an_answer() {
    // S58
    let stub = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let onus = checkout(twice());
    let response = client(&onus, Http1).oneshot(upgrade(&stub.url("/"))).await.unwrap();
    assert_eq!((response.status(), stub.attempts().len()), (StatusCode::UNAUTHORIZED, 1));
    assert_eq!(calls(&onus), [1, 0, 0]);

    let mut settings = h2::server::Builder::new();
    settings.enable_connect_protocol();
    let stub = streams_with(settings, |mut stream| async move { stream.ends(403, &[]) }).await;
    let mut request = connect(&stub);
    request.extensions_mut().insert(hyper::ext::Protocol::from_static("websocket"));
    let response = client(&onus, Http2).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    assert_eq!(calls(&onus), [2, 0, 0]);
}

#[tokio::test]
async fn where_nobody_listens_every_kind_of_request_fails_alike() {
    // [claim-6] S59
    let address = lines(|_| async {}).await.address;
    let onus = checkout(twice());
    let service = relay(&onus, Http1, Http1, address).await;
    for request in [
        "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "POST /a.B/C HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\n\r\n",
        "DELETE / HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        let mut caller = Line::to(service).await;
        caller.say(request).await;
        let head = caller.head().await.unwrap();
        assert_eq!(
            (head.status(), &*said(&head.headers)),
            (502, "unclaimed exhausted"),
            "{request}"
        );
    }
    assert_eq!(counted(&onus, "onus_retries_total", &[("verdict", "made")]), 4);
}
