//! Connections that break, at every point of a request: what has happened decides, and not which
//! of the system's calls has noticed it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request};
use hyper_util::client::legacy::Error;
use onus::hyper::HyperErrors;
use onus::outbound::ClassifyError;
use onus::{AttemptError, CallError};
use tower::{Layer, ServiceExt};

use super::line::{Line, lines};
use super::relay::{Speaks::Http1, checkout, client, plain, relay, safe_twice};
use crate::cast::{Pieces, counted, pass, paused_sockets, read, said, until};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";

const LIMIT: Duration = Duration::from_millis(50);

fn request(method: Method, url: String) -> Request<Pieces> {
    let body = if method == Method::POST { Pieces::sized("17 EUR") } else { Pieces::empty() };
    Request::builder().method(method).uri(url).body(body).unwrap()
}

#[derive(Clone, Copy, Debug)]
enum Breaks {
    Accepted,
    Asked,
    InTheStatus,
    InTheHead,
}

impl Breaks {
    async fn follow(self, line: &mut Line) {
        let (asks, says) = match self {
            Self::Accepted => (false, ""),
            Self::Asked => (true, ""),
            Self::InTheStatus => (true, "HTTP/1.1 20"),
            Self::InTheHead => (true, "HTTP/1.1 200 OK\r\ncontent-le"),
        };
        if asks {
            line.request().await;
        }
        line.say(says).await;
    }
}

/// Calls `url`, and the kinds of the errors that the layer was told.
async fn kinds(url: String) -> Vec<AttemptError> {
    let onus = checkout(safe_twice());
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let noted = kinds.clone();
    let layer = onus.outbound("peer").classify_errors(move |error: &Error| {
        let kind = HyperErrors.classify(error);
        noted.lock().unwrap().push(kind);
        kind
    });
    let client = layer.layer(plain(Http1));
    assert!(client.oneshot(request(Method::GET, url)).await.is_err());
    assert_eq!(counted(&onus, "onus_retries_total", &[("verdict", "made")]), 1);
    assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", "error")]), 1);
    std::mem::take(&mut kinds.lock().unwrap())
}

#[tokio::test]
async fn a_lost_answer_is_of_one_class_whoever_notices_the_loss() {
    // [term-3] S20
    let points = [Breaks::Accepted, Breaks::Asked, Breaks::InTheStatus, Breaks::InTheHead];
    for (at, resets) in points.into_iter().flat_map(|at| [(at, false), (at, true)]) {
        let stub = lines(move |mut line| async move {
            at.follow(&mut line).await;
            if resets {
                line.reset();
            }
        })
        .await;
        for _ in 0..20 {
            assert_eq!(
                kinds(stub.url("/")).await,
                [AttemptError::Failed(CallError::Reset); 2],
                "{at:?} {resets}"
            );
        }
    }
    // Refused: nobody listens any more.
    let url = lines(|_| async {}).await.url("/");
    assert_eq!(kinds(url).await, [AttemptError::Failed(CallError::Connect); 2]);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_was_idle_costs_nothing() {
    // [attempt-8] S17
    for resets in [false, true] {
        let closed = Arc::new(AtomicUsize::new(0));
        let counts = closed.clone();
        let stub = lines(move |mut line| {
            let closed = counts.clone();
            async move {
                line.request().await;
                line.say(OK).await;
                if resets {
                    line.reset();
                }
                closed.fetch_add(1, Ordering::Relaxed);
            }
        })
        .await;
        let onus = checkout(safe_twice());
        let client = client(&onus, Http1);
        for (n, method) in [Method::GET, Method::GET, Method::POST, Method::POST].iter().enumerate()
        {
            let request = request(method.clone(), stub.url("/"));
            let response = client.clone().oneshot(request).await.unwrap();
            assert_eq!(read(response.into_body()).await.unwrap(), "fine");
            until(|| closed.load(Ordering::Relaxed) == n + 1).await;
        }
        assert_eq!(stub.attempts(), ["-"; 4]);
        assert_eq!(counted(&onus, "onus_retries_total", &[("verdict", "made")]), 0);
        assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", "ok")]), 4);
    }
}

/// Sends one request through a service to a stub that has read it and gives no answer: it closes,
/// resets, or says nothing. Status and claim of the service's answer, and the stub's attempts.
fn lost(method: Method, silent: bool, resets: bool) -> (u16, String, Vec<String>) {
    paused_sockets(async {
        let stub = lines(move |mut line| async move {
            // On a connection that was used before, or on the first.
            if line.number == 0 {
                line.request().await;
                line.say(OK).await;
            }
            line.request().await;
            if silent {
                pass(LIMIT).await;
                line.gone().await;
            } else if resets {
                line.reset();
            }
        })
        .await;
        let policy = safe_twice().per_try_timeout(LIMIT);
        let service = relay(&checkout(policy), Http1, Http1, stub.address).await;
        let url = |path| format!("http://{service}{path}");
        let first = plain(Http1).request(request(Method::GET, url("/first"))).await.unwrap();
        assert_eq!(read(first.into_body()).await.unwrap(), "fine");
        let response = plain(Http1).request(request(method, url("/pay"))).await.unwrap();
        let attempts = stub.attempts().split_off(1);
        assert_eq!(stub.executed("/pay"), attempts.len());
        (response.status().as_u16(), said(response.headers()), attempts)
    })
}

#[test]
fn what_may_have_been_done_is_done_once() {
    // [decide-16] S17 S19
    for (silent, resets, status) in [(false, false, 502), (false, true, 502), (true, false, 504)] {
        let post = lost(Method::POST, silent, resets);
        assert_eq!(post, (status, "claimed silent handoff".to_owned(), vec!["-".to_owned()]));
        // Who may send it again says so.
        let (got, claim, attempts) = lost(Method::GET, silent, resets);
        assert_eq!((got, &*claim), (status, "unclaimed exhausted"));
        assert_eq!(attempts, ["-", "2 marked"]);
    }
}
