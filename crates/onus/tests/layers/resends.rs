//! A transport that sends a request again by itself, below the layers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response};
use onus::replay::ReplayBody;
use onus::{Onus, RetryPolicy};
use tower::{Layer, Service, ServiceExt};

use crate::cast::{Pieces, counted, get, paused};

/// A client whose reused connection turns out to be closed: it sends each request a second time,
/// and only the second reaches the callee.
#[derive(Clone, Default)]
struct Resending {
    sent: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Service<Request<ReplayBody<Pieces>>> for Resending {
    type Response = Response<Pieces>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Pieces>>) -> Self::Future {
        let mut sent = self.sent.lock().unwrap();
        sent.extend([request.headers().clone(), request.headers().clone()]);
        // The first attempt fails at the callee, the second does not.
        let status = if sent.len() == 2 { 503 } else { 200 };
        let answer = Response::builder().status(status).body(Pieces::empty());
        std::future::ready(Ok(answer.unwrap()))
    }
}

#[test]
fn a_resend_of_the_transport_is_no_attempt() {
    // [attempt-8]
    let transport = Resending::default();
    let sent = transport.sent.clone();
    let (status, onus) = paused(async move {
        // One token, which the one retry takes.
        let policy = RetryPolicy::attempts(2).budget_percent(0);
        let onus = Onus::builder("checkout").retry("payments", policy).build().unwrap();
        let client = onus.outbound("payments").layer(transport);
        (client.oneshot(get("/")).await.unwrap().status(), onus)
    });
    assert_eq!(status, 200);
    let numbers: Vec<_> = sent
        .lock()
        .unwrap()
        .iter()
        .map(|headers| headers.get("onus-attempt").map(|n| n.to_str().unwrap().to_owned()))
        .collect();
    let second = || Some("2".to_owned());
    assert_eq!(numbers, [None, None, second(), second()]);
    assert_eq!(counted(&onus, "onus_retries_total", &[("verdict", "made")]), 1);
}
