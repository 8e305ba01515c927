//! Requests and calls dropped at every point: everything that was counted adds up, and nothing is
//! left behind.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fastrand::Rng;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Either, Full};
use onus::replay::{Attempt, ReplayBody};
use onus::{Mode, Onus, OutboundService, RetryPolicy, Share};
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::cast::{Broken, counted};

/// A million by hand, in a release build.
const REQUESTS: u64 = if cfg!(debug_assertions) { 3_000 } else { 1_000_000 };

/// How many of the calls of a callee may be under way.
const PERMITS: usize = 32;

/// A callee, or the body of an answer, that does what its dice say.
#[derive(Clone)]
struct Wild {
    dice: Rng,
    /// Whether its policy allows no unsafe method.
    safe: bool,
}

/// What one attempt, or one body, still does: a few times nothing, then an end or more nothing.
struct Steps {
    dice: Rng,
    waits: u8,
    frames: u8,
    grpc: bool,
    hangs: bool,
}

impl Steps {
    fn new(mut dice: Rng, grpc: bool) -> Self {
        let (waits, frames) = (dice.u8(..4), dice.u8(..4));
        let hangs = dice.u8(..12) == 0;
        Self { dice, waits, frames, grpc, hangs }
    }

    fn poll_wait(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.waits == 0 && !self.hangs {
            return Poll::Ready(());
        }
        self.waits = self.waits.saturating_sub(1);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Body for Steps {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        ready!(self.poll_wait(cx));
        if self.frames == 0 {
            if !std::mem::take(&mut self.grpc) {
                return Poll::Ready(None);
            }
            let mut trailers = HeaderMap::new();
            let status = *self.dice.choice(&["0", "5", "14", "what"]).unwrap();
            trailers.insert("grpc-status", HeaderValue::from_static(status));
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        self.frames -= 1;
        self.waits = self.dice.u8(..3);
        if self.dice.u8(..20) == 0 {
            return Poll::Ready(Some(Err(Broken("the body broke"))));
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"data")))))
    }

    fn is_end_stream(&self) -> bool {
        self.frames == 0 && !self.grpc && !self.hangs
    }
}

/// What callees say with their errors.
const CLAIMS: [&str; 8] = [
    "claimed",
    "claimed;kind=silent",
    "unclaimed;reason=exhausted;attempt=2;origin=\"x\";hops=3",
    "unclaimed;kind=shield",
    "unclaimed;kind=silent",
    "nonsense;;",
    "claimed;attempt=999999999999999",
    "",
];

impl Service<Request<ReplayBody<Sent>>> for Wild {
    type Response = Response<Steps>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Steps>, Broken>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        match self.dice.u8(..30) {
            0 => Poll::Ready(Err(Broken("not ready"))),
            1 | 2 => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: Request<ReplayBody<Sent>>) -> Self::Future {
        let mut dice = self.dice.fork();
        let grpc = request.headers().contains_key(header::CONTENT_TYPE);
        let allowed = grpc && request.method() == "POST" || request.method() == "GET";
        if self.safe && !allowed {
            assert_eq!(request.body().attempt(), Attempt::FIRST, "{}", request.method());
        }
        Box::pin(async move {
            let mut body = pin!(request.into_body());
            for _ in 0..dice.u8(..4) {
                if !matches!(body.frame().await, Some(Ok(_))) {
                    break;
                }
            }
            let mut steps = Steps::new(dice.fork(), false);
            poll_fn(|cx| steps.poll_wait(cx)).await;
            let status = *dice.choice(&[200, 200, 200, 404, 429, 500, 503, 503]).unwrap();
            if dice.u8(..10) == 0 {
                return Err(Broken("the connection broke"));
            }
            let claim = *dice.choice(&CLAIMS).unwrap();
            let streams = grpc && status == 200;
            let mut response = Response::new(Steps::new(dice.fork(), streams));
            *response.status_mut() = status.try_into().unwrap();
            let headers = response.headers_mut();
            if streams {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            }
            if status != 200 && !claim.is_empty() {
                headers.insert("onus-claim", HeaderValue::from_static(claim));
            }
            if dice.u8(..8) == 0 {
                headers.insert("grpc-retry-pushback-ms", HeaderValue::from_static("-1"));
            }
            Ok(response)
        })
    }
}

/// A body of a request: as a whole, or in parts of which nobody knows how many.
type Sent = Either<Full<Bytes>, Steps>;

impl Steps {
    fn sized(self) -> Sent {
        let data = vec![b'x'; usize::from(self.frames) * 100];
        Either::Left(Full::from(data))
    }
}

type Client = OutboundService<ConcurrencyLimit<Wild>>;

/// A request that a handler makes. It has a path of its own, so that it repeats no other, or is one
/// of a few.
fn request(dice: &mut Rng, unique: bool) -> Request<Sent> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    if !unique {
        // Of known size, and small: it is read to see whether it is a repeat.
        let body = Full::from(["17 EUR", "4 EUR", ""][dice.usize(..3)]);
        return Request::post("/charge").body(Either::Left(body)).unwrap();
    }
    let path = format!("/{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let method = *dice.choice(&["GET", "POST", "PUT", "DELETE", "ODD"]).unwrap();
    let request = Request::builder().method(method).uri(path);
    let request = match dice.u8(..3) {
        0 => request.header(header::CONTENT_TYPE, "application/grpc"),
        _ => request,
    };
    let body = Steps::new(dice.fork(), dice.bool());
    request.body(if dice.bool() { Either::Right(body) } else { body.sized() }).unwrap()
}

/// Polls `future` a few times, and lets it go if it is not ready then.
async fn for_a_while<F: Future>(future: F, polls: u32) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        cx.waker().wake_by_ref();
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

/// The calls that handlers make.
#[derive(Clone)]
struct Calls {
    made: Arc<AtomicU64>,
    /// Whether none of them repeats another.
    unique: bool,
}

/// Makes a call and reads some of its answer.
async fn call(client: Client, mut dice: Rng, calls: Calls) -> bool {
    let polls = dice.u32(1..60);
    for_a_while(
        async {
            let mut client = client;
            let Ok(ready) = ServiceExt::<Request<Sent>>::ready(&mut client).await else {
                return false;
            };
            calls.made.fetch_add(1, Ordering::Relaxed);
            let Ok(response) = ready.call(request(&mut dice, calls.unique)).await else {
                return false;
            };
            let failed = response.status().is_server_error();
            if dice.bool() {
                let _ = response.into_body().collect().await;
            }
            !failed
        },
        polls,
    )
    .await
    .unwrap_or(false)
}

/// Ends a task when whoever waited for it has gone.
struct Task(tokio::task::JoinHandle<bool>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn handler(clients: [Client; 2], mut dice: Rng, calls: Calls) -> Response<Steps> {
    let mut call = |n: usize| call(clients[n].clone(), dice.fork(), calls.clone());
    let (one, two, three) = (call(0), call(1), call(0));
    let ok = match dice.u8(..7) {
        0 => true,
        1 => one.await && two.await,
        2 => {
            let (one, two) = tokio::join!(one, two);
            one && two
        }
        3 => tokio::select! { one = one => one, two = two => two },
        4 => (&mut Task(onus::spawn(one)).0).await.unwrap_or(false) && two.await,
        5 => {
            let _lost = Task(tokio::spawn(one));
            let _kept = Task(onus::spawn(two));
            three.await
        }
        _ => one.await || two.await || three.await,
    };
    let status = if ok { 200 } else { *dice.choice(&[500, 503, 404, 204]).unwrap() };
    let grpc = dice.u8(..4) == 0;
    let mut response = Response::new(Steps::new(dice, grpc));
    *response.status_mut() = status.try_into().unwrap();
    if grpc {
        let value = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}

/// Serves one request, as far as its caller waits.
async fn serve(onus: Onus, clients: [Client; 2], seed: u64, calls: Calls) {
    let mut dice = Rng::with_seed(seed);
    let handler_dice = dice.fork();
    let handler = service_fn(move |_: Request<Full<Bytes>>| {
        let (clients, dice) = (clients.clone(), handler_dice.clone());
        let answer = handler(clients, dice, calls.clone());
        async { Ok::<_, Broken>(answer.await) }
    });
    let mut request = Request::new(Full::default());
    for (name, value) in [
        ("onus-mark", "1"),
        ("onus-attempt", "3"),
        ("x-envoy-expected-rq-timeout-ms", "600000"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ] {
        if dice.u8(..3) == 0 {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    }
    let node = onus.inbound().layer(handler);
    let served = async {
        let response = node.oneshot(request).await.unwrap();
        let mut body = pin!(response.into_body());
        while let Some(Ok(_)) = body.frame().await {}
    };
    for_a_while(served, dice.u32(1..200)).await;
}

/// Memory of this process in pages, where the system tells it. In a small run beside other tests
/// it would be theirs as well.
fn pages() -> Option<u64> {
    if cfg!(debug_assertions) {
        return None;
    }
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').nth(1)?.parse().ok()
}

async fn stress(mode: Mode, requests: u64, unique: bool) {
    let retry = || RetryPolicy::attempts(3).backoff(Default::default(), Default::default());
    let builder = Onus::builder("checkout").mode(mode).silent_claims();
    let builder = builder.retry("payments", retry().unsafe_methods().no_budget());
    let onus = builder.retry("ledger", retry().gate()).build().unwrap();
    let holders = Arc::strong_count(onus.agent());
    let permits = ["payments", "ledger"].map(|name| (name, Arc::new(Semaphore::new(PERMITS))));
    let calls = Calls { made: Arc::default(), unique };
    let (mut begin, mut open) = (None, tokio::task::JoinSet::new());
    for seed in 0..requests {
        if seed == requests / 4 {
            begin = pages();
        }
        let client = |(name, permits): &(&str, Arc<Semaphore>)| {
            let wild = Wild { dice: Rng::with_seed(seed), safe: *name == "ledger" };
            onus.outbound(name).layer(ConcurrencyLimit::with_semaphore(wild, permits.clone()))
        };
        let clients = permits.each_ref().map(client);
        open.spawn(serve(onus.clone(), clients, seed, calls.clone()));
        while open.len() > 50 {
            open.join_next().await.unwrap().unwrap();
        }
    }
    while let Some(ended) = open.join_next().await {
        ended.unwrap();
    }
    // Tasks that were ended are dropped at their next turn.
    while permits.iter().any(|(_, permits)| permits.available_permits() < PERMITS) {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    // Before the metrics of some thousand edges are read as text.
    let end = pages();
    let sum = |family| counted(&onus, family, &[]);
    assert_eq!(sum("onus_requests_total"), requests, "each request ends once");
    let made = calls.made.load(Ordering::Relaxed);
    let ended = sum("onus_calls_total");
    // A call whose body was being read, to see whether it is a repeat, had not started.
    assert!(ended == made || !unique && ended < made, "each call ends once: {ended} of {made}");
    assert_eq!(sum("onus_repeats_total") == 0, unique);
    assert!(sum("onus_retries_total") > requests / 100, "there is something to count");
    assert_eq!(sum("onus_faults_total"), 0);
    assert_eq!(sum("onus_correlation_entries"), 0);
    assert_eq!(onus.replay_limits().in_use(), 0, "bodies are let go of");
    drop(permits);
    assert_eq!(Arc::strong_count(onus.agent()), holders, "nothing holds the agent");
    if let (Some(begin), Some(end)) = (begin, end) {
        assert!(end < begin + 16 * 1024 * 1024 / 4096, "{begin} pages became {end}");
    }
}

#[test]
fn everything_adds_up_and_nothing_is_left() {
    // [criteria-1] [deadline-4]
    let half = Mode::Enforce(Share::percent(50).unwrap());
    for mode in [Mode::Off, Mode::Observe, half] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(stress(mode, REQUESTS / 6, true));
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_time().build().unwrap();
    for unique in [true, false] {
        runtime.block_on(stress(Mode::ENFORCE, REQUESTS / 4, unique));
    }
}
