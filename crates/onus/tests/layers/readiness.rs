//! tower's contract: every attempt waits until the service below is ready for it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use onus::replay::BoxError;
use onus::{Onus, RetryPolicy};
use tokio::time::{Instant, Sleep};
use tower::{Layer, Service, ServiceExt};

use crate::cast::{Broken, Callee, Pieces, Reply, counted, get, outcome, paused};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A callee whose readiness is scripted as well: one line for each wait.
struct Turnstile {
    callee: Callee,
    waits: Arc<Mutex<Vec<Wait>>>,
    waiting: Option<Pin<Box<Sleep>>>,
    ready: bool,
}

#[derive(Clone, Copy)]
enum Wait {
    For(Duration),
    Fail,
}

impl Turnstile {
    fn new(callee: Callee, waits: &[Wait]) -> Self {
        let waits = Arc::new(Mutex::new(waits.iter().rev().copied().collect()));
        Self { callee, waits, waiting: None, ready: false }
    }
}

impl Clone for Turnstile {
    fn clone(&self) -> Self {
        let (callee, waits) = (self.callee.clone(), self.waits.clone());
        Self { callee, waits, waiting: None, ready: false }
    }
}

impl<B> Service<Request<B>> for Turnstile
where
    B: Body<Data = bytes::Bytes, Error = BoxError> + Send + 'static,
{
    type Response = Response<Pieces>;
    type Error = Broken;
    type Future = <Callee as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if !self.ready && self.waiting.is_none() {
            let wait = self.waits.lock().unwrap().pop();
            match wait.expect("the script foresees this wait") {
                Wait::For(time) => self.waiting = Some(Box::pin(tokio::time::sleep(time))),
                Wait::Fail => return Poll::Ready(Err(Broken("no connection"))),
            }
        }
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll(cx));
            self.waiting = None;
            self.ready = true;
        }
        Service::<Request<B>>::poll_ready(&mut self.callee, cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        self.callee.call(request)
    }
}

/// `ends`: status or error, and when. `attempts`: when each came.
#[track_caller]
fn check(
    policy: RetryPolicy,
    waits: &[Wait],
    script: &[Reply],
    ends: (Result<u16, &str>, u128),
    attempts: &[u128],
) {
    let (answer, at, came) = paused(async {
        let policy = policy.no_budget().backoff(ms(0), ms(0));
        let onus = Onus::builder("checkout").retry("payments", policy).build().unwrap();
        let callee = Callee::new(script.to_vec());
        let layer = onus.outbound("payments");
        let mut client = layer.layer(Turnstile::new(callee.clone(), waits));
        let start = Instant::now();
        let answer = match ServiceExt::<Request<Pieces>>::ready(&mut client).await {
            Ok(client) => client.call(get("/")).await,
            Err(error) => Err(error),
        };
        let answer = answer.map(|response| response.status().as_u16());
        let came: Vec<_> = callee.seen().iter().map(|seen| seen.at.as_millis()).collect();
        (answer.map_err(|broken| broken.0), start.elapsed().as_millis(), came)
    });
    assert_eq!((answer, at), ends);
    assert_eq!(came, attempts);
}

#[test]
fn every_attempt_waits_for_readiness() {
    let two = || RetryPolicy::attempts(2);
    let (fails, ok) = (Reply::says("claimed"), Reply::ok());
    let pause = |millis| Wait::For(ms(millis));
    let script = [fails, ok];
    check(two(), &[pause(0), pause(0)], &script, (Ok(200), 0), &[0, 0]);
    check(two(), &[pause(70), pause(30)], &script, (Ok(200), 100), &[70, 100]);
    let once = RetryPolicy::attempts(1);
    check(once, &[pause(70)], &script, (Ok(503), 70), &[70]);
}

#[test]
fn errors_of_readiness_are_the_services_own() {
    let two = || RetryPolicy::attempts(2);
    let fails = [Reply::says("claimed")];
    check(two(), &[Wait::Fail], &fails, (Err("no connection"), 0), &[]);
    let second = [Wait::For(ms(0)), Wait::Fail];
    check(two(), &second, &fails, (Err("no connection"), 0), &[0]);
    let three = [Wait::For(ms(0)), Wait::Fail, Wait::For(ms(0))];
    let script = [Reply::says("claimed"), Reply::ok()];
    check(RetryPolicy::attempts(3), &three, &script, (Ok(200), 0), &[0, 0]);
}

#[test]
fn limits_hold_while_an_attempt_waits_for_readiness() {
    let script = [Reply::says("claimed"), Reply::ok()];
    let late = [Wait::For(ms(0)), Wait::For(ms(5000))];
    let per_try = RetryPolicy::attempts(2).per_try_timeout(ms(100));
    check(per_try, &late, &script, (Ok(504), 100), &[0]);
    let overall = RetryPolicy::attempts(2).deadline(ms(300));
    check(overall, &late, &script, (Ok(504), 300), &[0]);
    // The handle goes on waiting for the next attempt.
    let again = [Wait::For(ms(0)), Wait::For(ms(150))];
    let three = RetryPolicy::attempts(3).per_try_timeout(ms(100));
    check(three, &again, &script, (Ok(200), 150), &[0, 150]);
}

#[test]
fn a_handle_that_is_ready_makes_the_call() {
    // Readiness belongs to one handle: the layer must not call a fresh clone in its place.
    let (seen, calls) = paused(async {
        let policy = RetryPolicy::attempts(2).no_budget();
        let onus = Onus::builder("checkout").retry("payments", policy).build().unwrap();
        let callee = Callee::new([Reply::ok()]);
        let waits = [Wait::For(ms(10)), Wait::For(ms(20))];
        let mut client = onus.outbound("payments").layer(Turnstile::new(callee.clone(), &waits));
        for _ in 0..2 {
            let client = ServiceExt::<Request<Pieces>>::ready(&mut client).await.unwrap();
            assert!(outcome(&client.call(get("/")).await.unwrap()).is_none());
        }
        (callee.seen(), counted(&onus, "onus_calls_total", &[("callee", "payments")]))
    });
    assert_eq!(seen.iter().map(|seen| seen.at.as_millis()).collect::<Vec<_>>(), [10, 30]);
    assert_eq!(calls, 2);
}
