//! Other people's layers around and below the layers, and services that call themselves.

use std::cell::Cell;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{Empty, Full};
use onus::replay::{BoxError, ReplayBody};
use onus::{AttemptError, CallError, Onus, RetryPolicy};
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::load_shed::{LoadShed, error::Overloaded};
use tower::timeout::{Timeout, error::Elapsed};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::cast::{Callee, Pieces, Reply, ask, counted, get, outcome, paused, post, said, serve};

const SECOND: Duration = Duration::from_secs(1);

fn two() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes().backoff(Duration::ZERO, Duration::ZERO)
}

#[test]
fn a_permit_comes_back_wherever_the_call_is_dropped() {
    // One permit, and a callee that takes its time: each wait of the call is met once.
    let policy = || two().unsafe_methods().per_try_timeout(SECOND).deadline(10 * SECOND);
    for script in [
        vec![Reply::says("claimed").after(SECOND / 2), Reply::ok().after(SECOND / 2)],
        vec![Reply::hangs()],
        vec![Reply::breaks(), Reply::hangs()],
        vec![Reply::says("claimed").header("retry-after", "1"), Reply::ok()],
    ] {
        for halves in 0..8 {
            paused(async {
                let onus = Onus::builder("checkout").retry("b", policy()).build().unwrap();
                let callee = Callee::new(script.clone());
                let permits = Arc::new(Semaphore::new(1));
                let limited = ConcurrencyLimit::with_semaphore(callee, permits.clone());
                let mut client = onus.outbound("b").layer(limited);
                // The handle outlives the call, as in a pool.
                let ready = ServiceExt::<Request<Pieces>>::ready(&mut client).await.unwrap();
                let call = ready.call(post("/", Pieces::sized("17 EUR")));
                let _ = tokio::time::timeout(halves * SECOND / 2, call).await;
                assert_eq!(permits.available_permits(), 1, "{halves} {script:?}");
                assert_eq!(onus.replay_limits().in_use(), 0);
            });
        }
    }
}

#[test]
fn errors_of_layers_below_keep_their_type() {
    paused(async {
        let onus = Onus::builder("checkout").retry("b", two()).build().unwrap();
        let slow = Timeout::new(Callee::new([Reply::hangs()]), SECOND);
        let error = onus.outbound("b").layer(slow).oneshot(get("/")).await.unwrap_err();
        assert!(error.is::<Elapsed>());
        let full = ConcurrencyLimit::new(Callee::new([Reply::ok()]), 0);
        let error = onus.outbound("b").layer(LoadShed::new(full)).oneshot(get("/")).await;
        assert!(error.unwrap_err().is::<Overloaded>());
        assert_eq!(counted(&onus, "onus_retries_total", &[("verdict", "made")]), 2);
    });
}

#[test]
fn what_a_limit_below_refuses_is_no_attempt_and_tells_callers_to_stop() {
    // [criteria-4] [claim-8]
    fn refused(error: &tower::BoxError) -> AttemptError {
        match error.is::<Overloaded>() {
            true => AttemptError::Refused,
            false => CallError::Reset.into(),
        }
    }
    for sent_before in [0, 1] {
        paused(async {
            let onus = Onus::builder("checkout").enforce().retry("b", two()).build().unwrap();
            let callee = Callee::new([Reply::says("claimed")]);
            let (below, calls) = (callee.clone(), Arc::new(AtomicUsize::new(0)));
            let limited = service_fn(move |request| {
                let below = below.clone();
                let full = calls.fetch_add(1, Ordering::Relaxed) >= sent_before;
                async move {
                    if full {
                        return Err(tower::BoxError::from(Overloaded::new()));
                    }
                    below.oneshot(request).await.map_err(Into::into)
                }
            });
            let client = onus.outbound("b").classify_errors(refused).layer(limited);
            let client = BoxCloneSyncService::new(client);
            let mut node = serve(&onus, move |_| {
                let client = client.clone();
                async move {
                    let status = match client.oneshot(get("/")).await {
                        Ok(response) => response.status(),
                        Err(_) => StatusCode::BAD_GATEWAY,
                    };
                    Response::builder().status(status).body(Pieces::empty()).unwrap()
                }
            });
            let answer = ask(&mut node, get("/")).await;
            assert_eq!(said(answer.headers()), "unclaimed gated", "after {sent_before}");
            assert_eq!(callee.attempts().len(), sent_before, "after {sent_before}");
            let gated = counted(&onus, "onus_retries_not_made_total", &[("reason", "gated")]);
            assert_eq!(gated, 1, "after {sent_before}");
        });
    }
}

/// Two attempts, whatever comes.
#[derive(Clone)]
struct Again(bool);

impl<Q: Clone, P, E> tower::retry::Policy<Q, Response<P>, E> for Again {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Q,
        answer: &mut Result<Response<P>, E>,
    ) -> Option<std::future::Ready<()>> {
        let failed = !answer.as_ref().is_ok_and(|answer| answer.status().is_success());
        (failed && std::mem::take(&mut self.0)).then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Q) -> Option<Q> {
        Some(request.clone())
    }
}

#[test]
fn a_retry_layer_around_makes_repeats_and_one_below_is_told_by_its_callee() {
    // [attempt-3] [attempt-5]
    let charge = || Request::post("/charge").body(Full::<Bytes>::from("17 EUR")).unwrap();
    let (around, claim) = paused(async {
        let onus = Onus::builder("checkout").enforce().build().unwrap();
        let callee = Callee::new([Reply::says("claimed")]);
        let client = onus.outbound("b").layer(callee.clone());
        let client = tower::retry::Retry::new(Again(true), client);
        let mut node = serve(&onus, move |_| {
            let client = client.clone();
            async move {
                let status = client.oneshot(charge()).await.unwrap().status();
                Response::builder().status(status).body(Pieces::empty()).unwrap()
            }
        });
        let response = ask(&mut node, get("/")).await;
        (callee.attempts(), said(response.headers()))
    });
    assert_eq!(around, ["-", "2"]);
    assert_eq!(claim, "unclaimed not-configured");
}

#[test]
fn a_buffer_around_ends_ownership_and_nothing_else() {
    // [claim-2] [correlate-5]
    let (status, claim) = paused(async {
        let onus = Onus::builder("checkout").enforce().retry("b", two()).build().unwrap();
        let client = onus.outbound("b").layer(Callee::new([Reply::says("unclaimed")]));
        let client: tower::buffer::Buffer<Request<Pieces>, _> =
            tower::buffer::Buffer::new(client, 4);
        let mut node = serve(&onus, move |request| {
            let client = client.clone();
            async move {
                let status = client.oneshot(request).await.unwrap().status();
                Response::builder().status(status).body(Pieces::empty()).unwrap()
            }
        });
        let response = ask(&mut node, get("/")).await;
        (response.status().as_u16(), said(response.headers()))
    });
    assert_eq!((status, &*claim), (503, "claimed context-lost"));
}

type Itself = BoxCloneSyncService<Request<Empty<Bytes>>, Response<Full<Bytes>>, Infallible>;

/// A service that answers `/n` by calling itself for `/n-1`, and fails at `/0`.
fn recursive(onus: &Onus) -> Itself {
    let (node, handler) = (onus.clone(), onus.clone());
    let service = service_fn(move |request: Request<Empty<Bytes>>| {
        let onus = handler.clone();
        async move {
            let depth: u32 = request.uri().path()[1..].parse().unwrap();
            let status = match depth.checked_sub(1) {
                None => 500,
                Some(below) => {
                    let lazily = service_fn({
                        let onus = onus.clone();
                        move |request: Request<ReplayBody<Empty<Bytes>>>| {
                            let itself = recursive(&onus);
                            itself.oneshot(request.map(|_| Empty::new()))
                        }
                    });
                    let below = Request::get(format!("/{below}")).body(Empty::new()).unwrap();
                    let answer = onus.outbound("checkout").layer(lazily).oneshot(below).await;
                    answer.unwrap().status().as_u16()
                }
            };
            Ok(Response::builder().status(status).body(Full::<Bytes>::default()).unwrap())
        }
    });
    let service = node.inbound().layer(service);
    BoxCloneSyncService::new(
        service.map_response(|response| response.map(|_| Full::<Bytes>::default())),
    )
}

#[test]
fn a_service_that_calls_itself_in_process_owns_its_error_once() {
    // [claim-3] [claim-4] [claim-8]
    let (line, requests) = paused(async {
        let builder = Onus::builder("checkout").enforce().retry("checkout", two());
        let onus = builder.build().unwrap();
        let request = Request::get("/5").body(Empty::new()).unwrap();
        let response = recursive(&onus).oneshot(request).await.unwrap();
        let line = response.headers()["onus-claim"].to_str().unwrap().to_owned();
        (line, counted(&onus, "onus_requests_total", &[]))
    });
    let expected = "unclaimed;reason=suppressed;attempt=1;origin=\"checkout\";hops=5";
    assert_eq!((&*line, requests), (expected, 7));
}

/// A client that is no `Sync` and whose requests borrow their bodies.
#[derive(Clone)]
struct Local(Cell<u32>);

struct Borrowed<'a>(Option<&'a [u8]>, PhantomData<Cell<()>>);

impl<'a> http_body::Body for Borrowed<'a> {
    type Data = &'a [u8];
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<&'a [u8]>, Infallible>>> {
        Poll::Ready(self.0.take().map(|data| Ok(http_body::Frame::data(data))))
    }
}

impl<'a> Service<Request<ReplayBody<Borrowed<'a>>>> for Local {
    type Response = Response<Borrowed<'a>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + 'a>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Borrowed<'a>>>) -> Self::Future {
        self.0.set(self.0.get() + 1);
        let number = request.body().attempt().number().get();
        Box::pin(async move {
            let body = crate::cast::read(request.into_body()).await?;
            assert_eq!(body, "borrowed");
            let status = if number == 1 { 503 } else { 200 };
            let body = Borrowed(Some(b"also"), PhantomData);
            Ok(Response::builder().status(status).body(body).unwrap())
        })
    }
}

#[test]
fn services_need_not_be_sync_and_bodies_may_borrow() {
    let text = "borrowed".to_owned();
    let onus = Onus::builder("checkout").retry("b", two().unsafe_methods()).build().unwrap();
    let client = onus.outbound("b").layer(Local(Cell::new(0)));
    let body = Borrowed(Some(text.as_bytes()), PhantomData);
    let call = pin!(client.oneshot(Request::post("/").body(body).unwrap()));
    let answer = call.poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Ok(response)) = answer else { panic!("it is ready at once") };
    assert_eq!(response.status(), 200);
    assert!(outcome(&response).is_none());
}
