//! hyper on both sides: its server under the inbound layer, its pooled client under the outbound.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use onus::hyper::HyperErrors;
use onus::replay::ReplayBody;
use onus::{CallError, Onus, OutboundService, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, ServiceExt, service_fn};

use super::peer::{Answers, Peer};
use crate::cast::{Piece, Pieces, counted, outcome, read, said, until};

type Wrapped = OutboundService<Client<HttpConnector, ReplayBody<Pieces>>, HyperErrors>;

fn client(onus: &Onus) -> Wrapped {
    onus.outbound("peer").hyper(Client::builder(TokioExecutor::new()).build_http())
}

fn two() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes()
}

fn get(url: String) -> Request<Pieces> {
    Request::get(url).body(Pieces::empty()).unwrap()
}

#[tokio::test]
async fn failed_attempts_give_their_connections_back() {
    const CALLS: usize = 5;
    // Every second answer is an error with a body of 20 KiB, which nobody wants to read, and whose
    // end comes later than its head, but long before the retry is due.
    let answers: Answers = |number, _| {
        let part = || Piece::data(vec![b'x'; 10 * 1024]);
        let late = [part(), Piece::Wait(Duration::from_millis(2)), part()];
        let (status, pieces) = if number % 2 == 0 { (503, &late[..]) } else { (200, &late[..1]) };
        let answer = Response::builder().status(status).header("grpc-retry-pushback-ms", "400");
        Some(answer.body(Pieces::new(pieces.to_vec())).unwrap())
    };
    let peer = Peer::start(answers).await;
    let onus = Onus::builder("checkout").retry("peer", two()).build().unwrap();
    let client = client(&onus);
    for _ in 0..CALLS {
        let response = client.clone().oneshot(get(peer.url("/"))).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(read(response.into_body()).await.unwrap().len(), 10 * 1024);
    }
    assert_eq!(peer.take().len(), 2 * CALLS);
    // One that were lost to each failed attempt would make six.
    assert!(peer.connections() <= 3, "{} connections", peer.connections());
}

#[tokio::test]
async fn a_failed_answer_that_does_not_end_does_not_hold_the_retry_up() {
    let answers: Answers = |number, _| {
        let endless = [Piece::data("part"), Piece::Hang];
        Some(match number {
            0 => Response::builder().status(503).body(Pieces::new(endless)).unwrap(),
            _ => Response::new(Pieces::sized("fine")),
        })
    };
    let peer = Peer::start(answers).await;
    let onus = Onus::builder("checkout").retry("peer", two()).build().unwrap();
    let response = client(&onus).oneshot(get(peer.url("/"))).await.unwrap();
    assert_eq!(read(response.into_body()).await.unwrap(), "fine");
}

#[tokio::test]
async fn an_upload_that_is_answered_early_is_sent_again() {
    // The peer reads one request by hand, so that it can answer before it has all of it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let peer = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        let mut head = [0; 64];
        first.read_exact(&mut head).await.unwrap();
        first.write_all(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        let (mut second, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        let count = |all: &[u8], letter| all.iter().filter(|byte| **byte == letter).count();
        while count(&all, b'z') < 1000 {
            assert!(second.read_buf(&mut all).await.unwrap() > 0, "the whole body is sent");
        }
        second.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        drop(first);
        count(&all, b'a')
    });
    let policy = two().unsafe_methods();
    let onus = Onus::builder("checkout").retry("peer", policy).build().unwrap();
    // The rest of the upload waits until long after the early answer.
    let pause = Piece::Wait(Duration::from_millis(100));
    let end = Piece::data(vec![b'z'; 1000]);
    let upload = Pieces::new([Piece::data(vec![b'a'; 1000]), pause, end]);
    let request = Request::post(url).body(upload).unwrap();
    let response = client(&onus).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(peer.await.unwrap() >= 1000, "the second attempt brings the beginning as well");
}

#[tokio::test]
async fn errors_are_told_apart_for_policies() {
    let check = async |url: &str, retried: CallError, expected| {
        let policy = two().errors([retried].into_iter().collect());
        let onus = Onus::builder("checkout").retry("peer", policy).build().unwrap();
        assert!(client(&onus).oneshot(get(url.to_owned())).await.is_err());
        let made = counted(&onus, "onus_retries_total", &[("verdict", "made")]);
        assert_eq!(made, expected, "{url} {retried:?}");
    };
    // Nobody listens on port 1.
    check("http://127.0.0.1:1/", CallError::Connect, 1).await;
    check("http://127.0.0.1:1/", CallError::Reset, 0).await;
    let closes = by_hand(b"").await;
    check(&closes, CallError::Reset, 1).await;
    check(&closes, CallError::Connect, 0).await;
    let babbles = by_hand(b"this is not HTTP\r\n\r\n").await;
    check(&babbles, CallError::Protocol, 1).await;
    check(&babbles, CallError::Reset, 0).await;
}

/// A peer that answers every request with these bytes and closes.
async fn by_hand(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(bytes).await;
        }
    });
    format!("http://{address}/")
}

/// hyper's server with the inbound layer around a handler.
async fn serve<H, F>(onus: &Onus, handler: H) -> SocketAddr
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Pieces>> + Send,
{
    let handler = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let service = TowerToHyperService::new(onus.inbound().layer(handler));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let stream = TokioIo::new(listener.accept().await.unwrap().0);
            tokio::spawn(http1::Builder::new().serve_connection(stream, service.clone()));
        }
    });
    address
}

#[tokio::test]
async fn claims_cross_two_services() {
    let peer =
        Peer::start(|_, _| Some(Response::builder().status(503).body(Pieces::empty()).unwrap()))
            .await;
    let onus = Onus::builder("checkout").enforce().retry("peer", two()).build().unwrap();
    let (wrapped, url) = (client(&onus), peer.url("/"));
    let checkout = serve(&onus, move |_| {
        let call = wrapped.clone().oneshot(get(url.clone()));
        async move {
            let status = call.await.unwrap().status();
            Response::builder().status(status).body(Pieces::empty()).unwrap()
        }
    })
    .await;
    let shop = Onus::builder("shop").enforce().retry("checkout", two()).build().unwrap();
    let pool = Client::builder(TokioExecutor::new()).build_http();
    let wrapped: Wrapped = shop.outbound("checkout").hyper(pool);
    let response = wrapped.oneshot(get(format!("http://{checkout}/pay"))).await.unwrap();
    assert_eq!((response.status().as_u16(), said(response.headers())), (503, "nothing".into()));
    let outcome = outcome(&response).unwrap();
    assert_eq!((outcome.stop.as_str(), outcome.read.as_str()), ("suppressed", "unclaimed"));
    let origin = outcome.origin.as_ref().unwrap();
    assert_eq!((&*origin.service, origin.hops), ("peer", 2));
    assert_eq!(peer.take().len(), 2);
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_the_call() {
    // [deadline-4]
    let peer = Peer::start(|_, _| None).await;
    let onus = Onus::builder("checkout").build().unwrap();
    let (wrapped, url) = (client(&onus), peer.url("/"));
    let checkout = serve(&onus, move |_| {
        let call = wrapped.clone().oneshot(get(url.clone()));
        async move {
            call.await.unwrap();
            Response::new(Pieces::empty())
        }
    })
    .await;
    let mut caller = TcpStream::connect(checkout).await.unwrap();
    caller.write_all(b"GET /pay HTTP/1.1\r\nhost: checkout\r\n\r\n").await.unwrap();
    until(|| peer.connections() == 1).await;
    drop(caller);
    let cancelled = [("outcome", "cancelled")];
    until(|| counted(&onus, "onus_requests_total", &cancelled) == 1).await;
    assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", "abandoned")]), 1);
    assert_eq!(counted(&onus, "onus_edge_requests_total", &[]), 0);
}

#[tokio::test]
async fn an_answer_ends_when_its_last_byte_has_left() {
    let onus = Onus::builder("checkout").build().unwrap();
    let bodies = [
        || Pieces::sized("all"),
        || Pieces::new([Piece::data("in "), Piece::data("parts")]),
        Pieces::empty,
    ];
    for (n, body) in bodies.into_iter().enumerate() {
        let address = serve(&onus, move |_| async move { Response::new(body()) }).await;
        let request = Request::get(format!("http://{address}/")).body(Pieces::empty()).unwrap();
        let plain: Client<_, Pieces> = Client::builder(TokioExecutor::new()).build_http();
        let all: Bytes = read(plain.request(request).await.unwrap().into_body()).await.unwrap();
        let ok = counted(&onus, "onus_requests_total", &[("outcome", "ok")]);
        assert_eq!(ok, n as u64 + 1, "{all:?}");
    }
}
