//! Request bodies on the wire: sent again as they were, or not at all.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use onus::RetryPolicy;
use onus::replay::{BoxError, ReplayLimits};
use tower::{Service, ServiceExt};

use super::line::{Line, lines};
use super::notes::{Seen, Stub};
use super::relay::{Speaks, Speaks::Http1, Speaks::Http2, checkout, client, relay, twice};
use super::streams::streams;
use crate::cast::{Piece, Pieces, counted, outcome, pass, paused_sockets, said};

const FAILS: &str = "HTTP/1.1 503 Busy\r\nonus-claim: claimed\r\ncontent-length: 0\r\n\r\n";
const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// A stub that reads each request to its end, fails the first two, and is fine then.
async fn fails_twice(speaks: Speaks) -> Stub {
    match speaks {
        Http1 => {
            lines(|mut line| async move {
                while line.request().await.is_some() {
                    line.say(if line.requests() < 3 { FAILS } else { FINE }).await;
                }
            })
            .await
        }
        Http2 => {
            streams(|mut stream| async move {
                stream.request().await;
                stream.ends(if stream.number < 2 { 503 } else { 200 }, &[]);
            })
            .await
        }
    }
}

/// Everything of a request that does not depend on how its body is framed: a size that is known
/// after the first attempt may be told by the next.
fn content(seen: &Seen) -> String {
    let mut headers = seen.headers.clone();
    for name in ["content-length", "transfer-encoding", "onus-attempt", "onus-mark"] {
        headers.remove(name);
    }
    format!("{} {headers:?} {:?} {:?}", seen.method, seen.body, seen.trailers)
}

#[tokio::test]
async fn every_attempt_brings_the_same_body() {
    // S06
    type Make = fn() -> Pieces;
    let bodies: [(Make, &str, usize); 5] = [
        (|| Pieces::sized("17 EUR"), "17 EUR", 0),
        (|| Pieces::new([Piece::data("17"), Piece::data(" EUR")]), "17 EUR", 0),
        (|| Pieces::new([Piece::data("17"), Piece::Trailers(vec![("sum", "1")])]), "17", 1),
        (Pieces::empty, "", 0),
        (|| Pieces::new([Piece::data("")]), "", 0),
    ];
    for speaks in [Http1, Http2] {
        for (body, data, trailers) in bodies {
            for method in [Method::POST, Method::PUT] {
                let stub = fails_twice(speaks).await;
                let policy = RetryPolicy::attempts(3).no_budget().unsafe_methods();
                let client = client(&checkout(policy), speaks);
                // Trailers that are not announced do not leave over HTTP/1.1.
                let request = Request::builder().method(method).header("trailer", "sum");
                let request = request.uri(stub.url("/")).body(body()).unwrap();
                assert_eq!(client.oneshot(request).await.unwrap().status(), 200);
                let seen = stub.seen();
                assert_eq!(
                    (&seen[0].body[..], seen[0].trailers.len()),
                    (data.as_bytes(), trailers)
                );
                let all: Vec<_> = seen.iter().map(content).collect();
                assert_eq!(all, vec![all[0].clone(); 3], "{speaks:?}");
            }
        }
    }
}

/// A service that is sent an upload of unknown size, in parts of 1 KiB, and passes it on.
struct Upload {
    caller: Line,
    sent: usize,
}

impl Upload {
    async fn start(service: std::net::SocketAddr) -> Self {
        let mut caller = Line::to(service).await;
        caller.say("PUT /up HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
        Self { caller, sent: 0 }
    }

    /// Sends so much more, as far as the service takes it.
    async fn send(&mut self, kib: usize) {
        for _ in 0..kib {
            let chunk = part(self.sent);
            self.sent += 1;
            self.caller.say([b"400\r\n", &chunk[..], b"\r\n"].concat()).await;
        }
    }

    async fn end(&mut self) {
        self.caller.say("0\r\n\r\n").await;
    }
}

/// The data of a part, which tells the parts apart.
fn part(number: usize) -> Vec<u8> {
    number.to_be_bytes().repeat(128)
}

/// What the parts up to this one are together.
fn parts(count: usize) -> Vec<u8> {
    (0..count).flat_map(part).collect()
}

const KIB: usize = 1024;

/// A stub whose first attempt says `early` when so much of an upload has come, and reads no more;
/// the second reads all.
async fn early(speaks: Speaks, kib: usize, early: (u16, &'static str)) -> Stub {
    let (status, headers) = early;
    match speaks {
        Http1 => {
            lines(move |mut line| async move {
                if line.number > 0 {
                    line.request().await;
                    return line.say(FINE).await;
                }
                line.head().await;
                line.bytes(kib * KIB).await;
                line.say(format!("HTTP/1.1 {status} x\r\n{headers}content-length: 0\r\n\r\n"))
                    .await;
                line.stays().await;
            })
            .await
        }
        Http2 => {
            streams(move |mut stream| async move {
                if stream.number > 0 {
                    stream.request().await;
                    return stream.ends(200, &[]);
                }
                stream.bytes(kib * KIB).await;
                let claim: &[_] = if status == 503 { &[("onus-claim", "claimed")] } else { &[] };
                stream.ends(status, claim);
                stream.gone().await;
            })
            .await
        }
    }
}

const CLAIMED: &str = "onus-claim: claimed\r\n";

#[tokio::test]
async fn an_early_failure_gives_the_upload_to_the_next_attempt() {
    // S05
    for speaks in [Http1, Http2] {
        let stub = early(speaks, 1, (503, CLAIMED)).await;
        let onus = checkout(twice());
        let service = relay(&onus, Http1, speaks, stub.address).await;
        let mut upload = Upload::start(service).await;
        upload.send(1).await;
        // The rest, far beyond what is kept, goes to whoever reads.
        upload.send(2 * KIB - 1).await;
        upload.end().await;
        assert_eq!(upload.caller.head().await.unwrap().status(), 200, "{speaks:?}");
        let [seen] = &stub.seen()[..] else { panic!("the second is read to its end") };
        assert!(seen.body == parts(2 * KIB), "{speaks:?}: nothing is lost and nothing comes twice");
        assert_eq!(onus.replay_limits().in_use(), 0);
    }
}

#[tokio::test]
async fn an_early_answer_is_passed_on_while_the_upload_goes_on() {
    // S05
    let kept = ReplayLimits::PER_REQUEST_DEFAULT / KIB;
    for speaks in [Http1, Http2] {
        for (kib, answer, claim) in [
            (1, (200, ""), "nothing"),
            (1, (413, ""), "nothing"),
            (1, (413, "connection: close\r\n"), "nothing"),
            // More has left than is kept.
            (kept + 2, (503, CLAIMED), "claimed handoff"),
        ] {
            let stub = early(speaks, kib, answer).await;
            let onus = checkout(twice());
            let service = relay(&onus, Http1, speaks, stub.address).await;
            let mut upload = Upload::start(service).await;
            upload.send(kib).await;
            let head = upload.caller.head().await.expect("the answer does not wait for the upload");
            assert_eq!((head.status(), &*said(&head.headers)), (answer.0, claim), "{speaks:?}");
            assert_eq!(onus.replay_limits().in_use(), 0, "nothing is kept behind the answer");
            assert_eq!(stub.attempts().len(), 0, "there is no second attempt");
            // The upload goes on, or its connection is closed; it does not stand still.
            upload.send(256).await;
        }
    }
}

#[test]
fn what_comes_in_during_the_wait_for_a_retry_makes_no_error() {
    // S08
    paused_sockets(async {
        let stub = early(Http1, 1, (503, "onus-claim: claimed\r\nretry-after: 1\r\n")).await;
        let onus = checkout(twice().deadline(Duration::from_secs(60)));
        let service = relay(&onus, Http1, Http1, stub.address).await;
        let mut upload = Upload::start(service).await;
        upload.send(1).await;
        let rest = async {
            upload.send(511).await;
            upload.end().await;
            upload.caller.head().await.unwrap().status()
        };
        let wait = async {
            while stub.connections() < 2 {
                pass(Duration::from_millis(100)).await;
            }
        };
        assert_eq!(tokio::join!(rest, wait).0, 200);
        assert!(stub.seen()[0].body == parts(512));
    });
}

/// Connects, but for the first time.
#[derive(Clone)]
struct RefusedOnce {
    connector: HttpConnector,
    refused: Arc<AtomicBool>,
}

impl Service<Uri> for RefusedOnce {
    type Response = <HttpConnector as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if self.refused.swap(true, Ordering::Relaxed) {
            let connecting = self.connector.call(uri);
            return Box::pin(async { Ok(connecting.await?) });
        }
        Box::pin(async { Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()) })
    }
}

#[tokio::test]
async fn a_refused_connection_costs_no_body_of_any_size() {
    // S08
    for size in [1, KIB, 64 * KIB, 64 * KIB + 1, 10 * KIB * KIB] {
        for sized in [true, false] {
            let stub = lines(|mut line| async move {
                line.request().await;
                line.say(FINE).await;
            })
            .await;
            let onus = checkout(twice());
            let connector = HttpConnector::new();
            let connector = RefusedOnce { connector, refused: Arc::default() };
            let client = Client::builder(TokioExecutor::new()).build(connector);
            let client = onus.outbound("peer").hyper(client);
            let data = vec![b'x'; size];
            let body = if sized { Pieces::sized(data) } else { Pieces::new([Piece::data(data)]) };
            let request = Request::post(stub.url("/")).body(body).unwrap();
            assert_eq!(client.oneshot(request).await.unwrap().status(), 200, "{size}");
            assert_eq!(
                (stub.attempts(), stub.seen()[0].body.len()),
                (vec!["2 marked".into()], size)
            );
        }
    }
}

#[tokio::test]
async fn an_answer_to_a_body_that_is_gone_is_passed_on_and_counted() {
    // [decide-7] S08
    for (size, attempts) in [(1, 2), (64 * KIB, 2), (64 * KIB + 1, 1), (10 * KIB * KIB, 1)] {
        let stub = lines(|mut line| async move {
            while line.request().await.is_some() {
                line.say(FAILS).await;
            }
        })
        .await;
        let onus = checkout(twice());
        let body = Pieces::sized(vec![b'x'; size]);
        let request = Request::post(stub.url("/")).body(body).unwrap();
        let response = client(&onus, Http1).oneshot(request).await.unwrap();
        assert_eq!((response.status().as_u16(), stub.attempts().len()), (503, attempts), "{size}");
        let reason = if attempts == 1 { "not-replayable" } else { "exhausted" };
        assert_eq!(outcome(&response).unwrap().stop.as_str(), reason);
        assert_eq!(counted(&onus, "onus_retries_not_made_total", &[("reason", reason)]), 1);
    }
}
