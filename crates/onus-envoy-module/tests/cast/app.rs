//! An application beside an Envoy: it counts what it handles, and calls the next service through
//! its Envoy.

use std::future::{Future, pending};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use http::{HeaderMap, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::http::{Answer, Client, Protocol, answer};

/// What an application answers.
pub(crate) type Reply = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// How an application works.
type Handler = Arc<dyn Fn(Arc<App>, HeaderMap) -> Reply + Send + Sync>;

/// An application.
pub(crate) struct App {
    pub(crate) protocol: Protocol,
    pub(crate) address: SocketAddr,
    handled: AtomicU64,
    requests: Mutex<Vec<HeaderMap>>,
    client: Client,
    /// Where its Envoy takes calls.
    outbound: OnceLock<SocketAddr>,
    server: OnceLock<JoinHandle<()>>,
}

impl App {
    /// An application that is served until dropped.
    pub(crate) async fn start<F>(protocol: Protocol, handler: F) -> Arc<Self>
    where
        F: Fn(Arc<Self>, HeaderMap) -> Reply + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let app = Arc::new(Self {
            protocol,
            address: listener.local_addr().unwrap(),
            handled: AtomicU64::new(0),
            requests: Mutex::default(),
            client: Client::new(protocol),
            outbound: OnceLock::new(),
            server: OnceLock::new(),
        });
        let server = tokio::spawn(serve(listener, app.clone(), Arc::new(handler)));
        app.server.set(server).unwrap();
        app
    }

    /// An application that fails always.
    pub(crate) async fn failing(protocol: Protocol) -> Arc<Self> {
        Self::start(protocol, |app, _| Box::pin(async move { answer(app.protocol, true) })).await
    }

    /// An application that fails if and only if its callee does.
    pub(crate) async fn passing(protocol: Protocol) -> Arc<Self> {
        Self::start(protocol, |app, headers| {
            Box::pin(async move {
                let failed = app.call(&handed_on(&headers, CONTEXT)).await;
                answer(app.protocol, failed)
            })
        })
        .await
    }

    /// An application that does what the plan in each request says of the caller, and hands on of
    /// its request what is named here.
    pub(crate) async fn planned_caller(
        protocol: Protocol,
        hands_on: &'static [&'static str],
    ) -> Arc<Self> {
        Self::start(protocol, move |app, headers| {
            Box::pin(async move {
                let context = handed_on(&headers, hands_on);
                let call = app.call(&context);
                let failed = match Plan::of(&headers) {
                    Plan::Own => true,
                    Plan::Dependency => call.await,
                    Plan::Both => call.await | true,
                    Plan::Swallowed => call.await & false,
                    Plan::Abandoned => timeout(IMPATIENCE, call).await.unwrap_or(true),
                    Plan::Ok => call.await,
                };
                answer(app.protocol, failed)
            })
        })
        .await
    }

    /// An application that does what the plan in each request says of the callee.
    pub(crate) async fn planned_callee(protocol: Protocol) -> Arc<Self> {
        Self::start(protocol, move |app, headers| {
            Box::pin(async move {
                match Plan::of(&headers) {
                    Plan::Own | Plan::Ok => answer(app.protocol, false),
                    Plan::Dependency | Plan::Both | Plan::Swallowed => answer(app.protocol, true),
                    Plan::Abandoned => pending().await,
                }
            })
        })
        .await
    }

    /// Calls the next service; whether that failed.
    pub(crate) async fn call(&self, headers: &HeaderMap) -> bool {
        let outbound = *self.outbound.get().expect("its Envoy was started");
        self.client.send(outbound, headers).await.map_or(true, |seen| seen.failed())
    }

    /// Its Envoy takes calls here.
    pub(crate) fn call_through(&self, outbound: SocketAddr) {
        let _ = self.outbound.set(outbound);
    }

    /// The requests that it has handled.
    pub(crate) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// The line of that name in each request that it has handled; empty without one.
    pub(crate) fn seen(&self, name: &str) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let line =
            |headers: &HeaderMap| headers.get(name).map(|line| line.to_str().unwrap().into());
        requests.iter().map(|headers| line(headers).unwrap_or_default()).collect()
    }

    /// Ends it as a crash does.
    pub(crate) fn stop(&self) {
        if let Some(server) = self.server.get() {
            server.abort();
        }
    }
}

/// What becomes of a request, by caller and callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The caller fails without a call.
    Own,
    /// The callee fails, and the caller with it.
    Dependency,
    /// The callee fails, and so would the caller.
    Both,
    /// The callee fails, and the caller answers all the same.
    Swallowed,
    /// The callee does not answer, and the caller gives up.
    Abandoned,
    /// Nobody fails.
    Ok,
}

impl Plan {
    const ALL: [Self; 6] =
        [Self::Own, Self::Dependency, Self::Both, Self::Swallowed, Self::Abandoned, Self::Ok];

    /// The spelling in the header that carries it.
    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    fn of(headers: &HeaderMap) -> Self {
        let name = headers["x-plan"].to_str().unwrap();
        Self::ALL.into_iter().find(|plan| plan.name() == name).unwrap()
    }
}

/// What tracing libraries hand on.
pub(crate) const CONTEXT: &[&str] = &["traceparent", "tracestate"];

/// Longer than any answer takes that comes.
const IMPATIENCE: Duration = Duration::from_millis(100);

/// What an application hands on of its request, and what tests ask of all of them.
fn handed_on(headers: &HeaderMap, names: &[&str]) -> HeaderMap {
    let carried = names.iter().chain(&["x-plan", "x-onus-fault"]);
    carried.filter_map(|name| Some((name.parse().ok()?, headers.get(*name)?.clone()))).collect()
}

async fn serve(listener: TcpListener, app: Arc<App>, handler: Handler) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let _ = stream.set_nodelay(true);
        let (app, handler) = (app.clone(), handler.clone());
        let front = service_fn(move |request: Request<Incoming>| {
            app.handled.fetch_add(1, Ordering::Relaxed);
            app.requests.lock().unwrap().push(request.headers().clone());
            let reply = handler(app.clone(), request.headers().clone());
            async move { Ok::<_, std::convert::Infallible>(reply.await) }
        });
        connections.spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), front).await;
        });
    }
}
